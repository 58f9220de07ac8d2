// manifest.json: what makes a folder of tensors a checkpoint. Written last, once, by link(); it
// names every file with its size and the hash of each block, and everything besides the tensors
// that a run needs to go on as if it had never stopped. It ends with a hash of itself, so that a
// flipped digit in it is noticed like one in a tensor.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/file.hpp"
#include "config/base/hash.hpp"
#include "model/description.hpp"

namespace troupe::checkpoint {

struct history_entry {
  std::uint64_t step = 0;
  std::string what;  // in words: "resumed with training.steps = 240 instead of 120"
  friend bool operator==(const history_entry&, const history_entry&) = default;
};

// What the run knows and the tensors do not say.
struct facts {
  std::string run_id;
  std::uint64_t step = 0;           // the last finished one
  std::uint64_t data_position = 0;  // where the next step's samples begin
  std::uint64_t updates = 0;        // finished AdamW updates: skipped steps make none
  std::uint64_t tokens = 0;
  model::description model;
  std::vector<std::pair<std::string, std::string>> config;  // keys that bits depend on, in order
  std::string numerics_class;
  std::uint64_t numerics_version = 0;
  std::string data_digest;
  std::string tokenizer;
  nlohmann::json record = nlohmann::json::object();  // the step's decision record, opaque here
  std::vector<history_entry> history;
  friend bool operator==(const facts&, const facts&) = default;
};

struct file_entry {
  std::string name;
  std::uint64_t size = 0;       // bytes
  std::vector<hash128> blocks;  // xxh3-128 of each block's bytes
  friend bool operator==(const file_entry&, const file_entry&) = default;
};

struct manifest {
  facts about;
  std::vector<file_entry> files;  // layers in model order; parameters, first, second moments
  hash128 weights_hash, state_hash;
  friend bool operator==(const manifest&, const manifest&) = default;
};

inline constexpr std::uint64_t manifest_format = 1;

std::string to_text(const manifest& m);
// `file` is for messages. Refusals are io (74): a damaged checkpoint, not bad data of the user.
result<manifest> parse_manifest(std::string_view text, const std::string& file);
result<manifest> read_manifest(file_system& files, const std::string& folder);

}  // namespace troupe::checkpoint
