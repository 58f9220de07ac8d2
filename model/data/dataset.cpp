#include "model/data/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/data/digest.hpp"

namespace troupe::model::data {
namespace {

// Token files up to this size are checked as a whole when the data set opens, about a second of
// reading; longer ones so far, and the rest window by window before each is used.
constexpr std::uint64_t eager_check_bytes = std::uint64_t{1} << 30;

error bad_config(std::string message) { return {exit_code::bad_config, std::move(message)}; }

error too_little(const token_store& store, std::uint64_t seq_len) {
  std::uint64_t longest = 0;
  for (std::size_t i = 0; i < store.streams(); ++i) longest = std::max(longest, store.tokens_of(i));
  return {
      exit_code::bad_data,
      fmt::format("too little data: {} tokens in {} file(s) of {}, the longest stream has {}, but "
                  "one window of training.seq_len {} needs {} tokens in one stream; shorten the "
                  "window or add text",
                  store.tokens(), store.files().size(), store.files().front().path, longest,
                  seq_len, seq_len + 1)};
}

}  // namespace

result<dataset> dataset::open(const dataset_options& options) {
  ensure(options.seq_len > 0, "a data set needs a window length");
  ensure(options.vocabulary > 0, "a data set needs the size of the vocabulary");
  if (options.sources.empty())
    return bad_config("no data: name at least one [[data.sources]] with a path");
  auto store = token_store::open(options.sources, options.add_eos);
  if (!store) return store.failure();

  if (store->holds_text() && options.vocabulary < byte_vocabulary(options.add_eos))
    return bad_config(fmt::format(
        "model.vocab_size {} is too small for text: bytes need {} entries{}", options.vocabulary,
        byte_vocabulary(options.add_eos),
        options.add_eos ? " with the end-of-text token (256 with tokenizer.add_eos = false)" : ""));
  if (options.eod_mask_loss && !options.eod_token && !(store->holds_text() && options.add_eos))
    return bad_config(
        "data.eod_mask_loss needs the end-of-document token: set data.eod_token to its id");
  if (options.eod_token && *options.eod_token >= options.vocabulary)
    return bad_config(fmt::format("data.eod_token {} is not below model.vocab_size {}",
                                  *options.eod_token, options.vocabulary));

  if (auto good = store->check_ids(options.vocabulary, eager_check_bytes); !good)
    return good.failure();
  std::vector<std::uint64_t> lengths;
  for (std::size_t i = 0; i < store->streams(); ++i) lengths.push_back(store->tokens_of(i));
  window_map windows(lengths, options.seq_len);
  if (windows.windows() == 0) return too_little(*store, options.seq_len);
  return dataset(std::move(*store), std::move(windows), options);
}

dataset::dataset(token_store store, window_map windows, const dataset_options& options)
    : store_(std::move(store)),
      windows_(std::move(windows)),
      order_(windows_.windows(), options.seed, options.shuffle),
      vocabulary_(options.vocabulary) {
  if (options.eod_mask_loss) masked_token_ = options.eod_token.value_or(byte_end_of_text);
}

std::vector<std::string> dataset::notes() const {
  std::vector<std::string> notes = store_.notes();
  if (unused_tokens() != 0)
    notes.push_back(fmt::format(
        "{} of {} tokens are not used: the ends of {} too short for a window "
        "of {}",
        unused_tokens(), tokens(), store_.streams() == 1 ? "the data" : "streams", seq_len()));
  return notes;
}

result<std::size_t> dataset::fill(std::uint64_t position, std::span<std::int32_t> tokens,
                                  std::span<std::int32_t> targets) const {
  ensure(tokens.size() == seq_len() && targets.size() == seq_len(),
         "a sequence was asked for in buffers of another length");
  std::vector<std::uint32_t> window(seq_len() + 1);
  const auto [stream, first] = windows_.place_of(order_.window_at(position));
  if (auto got = store_.read(stream, first, window); !got) return got.failure();
  if (auto good = store_.check_ids(stream, first, window, vocabulary_); !good)
    return good.failure();

  std::size_t counted = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(window[i]);
    const bool counts = !masked_token_ || window[i] != *masked_token_;
    targets[i] = counts ? static_cast<std::int32_t>(window[i + 1]) : uncounted_target;
    counted += counts;
  }
  return counted;
}

result<hash128> dataset::digest() const { return window_digest(store_, windows_); }

}  // namespace troupe::model::data
