// The tail rule: where windows lie in the tokens.
//
// Tokens come in streams: all text and JSON-lines documents, end to end in order, are one; every
// token file is one of its own. A window of T inputs and their T targets is T + 1 consecutive
// tokens of one stream; window w of a stream begins at token w T, so neighbours share one token and
// every token but a stream's first is a target exactly once an epoch. What is left at the end of a
// stream, less than T tokens that no window reaches, is not trained on and is counted as unused; a
// stream of less than T + 1 tokens is unused as a whole.
//
// Not chosen: a last window that overlaps its neighbour (some tokens would count twice), padding (a
// shape of its own for the sake of at most T - 1 tokens), windows that span token files (their
// writers end a file where they like; the join would be text that nobody wrote).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::model::data {

struct window_place {
  std::size_t stream = 0;
  std::uint64_t first_token = 0;  // in the stream
};

class window_map {
 public:
  window_map(std::span<const std::uint64_t> stream_tokens, std::uint64_t seq_len);

  std::uint64_t seq_len() const { return seq_len_; }
  std::uint64_t windows() const { return windows_before_.back(); }
  std::uint64_t windows_of(std::size_t stream) const {
    return windows_before_[stream + 1] - windows_before_[stream];
  }
  std::uint64_t unused_tokens_of(std::size_t stream) const;
  std::uint64_t unused_tokens() const;

  window_place place_of(std::uint64_t window) const;  // window < windows()

 private:
  std::uint64_t seq_len_;
  std::vector<std::uint64_t> stream_tokens_;
  std::vector<std::uint64_t> windows_before_;  // one more entry than streams
};

}  // namespace troupe::model::data
