// What a run trains on: the one include that training and validation need.
//
// `open` reads and checks; from then on `fill(position, ...)` gives the sequence at any position of
// the run, the same whoever asks, in whatever order, from any number of threads. Nothing here
// moves: the position belongs to the caller, so validation cannot disturb training.
//
//   auto data = dataset::open(options);                 // error: say it and end with its code
//   const auto p = first_position(step, global_batch);  // then p + 0 ... p + global_batch - 1
//   auto counted = data->fill(p + i, tokens, targets);
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/hash.hpp"
#include "model/data/order.hpp"
#include "model/data/tokens.hpp"
#include "model/data/windows.hpp"

namespace troupe::model::data {

inline constexpr std::int32_t uncounted_target = -1;

struct dataset_options {
  std::vector<source> sources;
  std::uint64_t seq_len = 0;     // T
  std::uint64_t vocabulary = 0;  // of the model; every id has to be below it
  bool add_eos = true;           // byte tokenizer: documents end with id 256
  bool shuffle = true;           // validation: false
  std::uint64_t seed = 0;
  bool eod_mask_loss = false;
  // The end-of-document token for eod_mask_loss; unset: 256, if text is read with add_eos.
  std::optional<std::uint32_t> eod_token;
};

class dataset {
 public:
  static result<dataset> open(const dataset_options& options);

  std::uint64_t seq_len() const { return windows_.seq_len(); }
  std::uint64_t windows() const { return windows_.windows(); }              // an epoch
  std::uint64_t tokens() const { return store_.tokens(); }                  // found
  std::uint64_t unused_tokens() const { return windows_.unused_tokens(); }  // by the tail rule
  std::uint64_t epoch_of(std::uint64_t position) const { return order_.epoch_of(position); }
  const std::vector<file_facts>& files() const { return store_.files(); }

  // Sentences for the log, said once at the start.
  std::vector<std::string> notes() const;

  // The sequence at `position`: T tokens and the token after each of them. With eod_mask_loss the
  // target of an end-of-document token is `uncounted_target`. Returns how many targets count.
  result<std::size_t> fill(std::uint64_t position, std::span<std::int32_t> tokens,
                           std::span<std::int32_t> targets) const;

  // Names the windows by content (digest.hpp): equal for the same windows, whatever files and
  // formats they came from. Reads at most 64 MiB.
  result<hash128> digest() const;

 private:
  dataset(token_store store, window_map windows, const dataset_options& options);

  token_store store_;
  window_map windows_;
  window_order order_;
  std::uint64_t vocabulary_;
  std::optional<std::uint32_t> masked_token_;
};

}  // namespace troupe::model::data
