#include "model/data/windows.hpp"

#include <algorithm>

#include "config/base/error.hpp"

namespace troupe::model::data {

window_map::window_map(std::span<const std::uint64_t> stream_tokens, std::uint64_t seq_len)
    : seq_len_(seq_len), stream_tokens_(stream_tokens.begin(), stream_tokens.end()) {
  ensure(seq_len > 0, "a window needs at least one token");
  windows_before_.push_back(0);
  for (std::uint64_t n : stream_tokens_)
    windows_before_.push_back(windows_before_.back() + (n == 0 ? 0 : (n - 1) / seq_len));
}

std::uint64_t window_map::unused_tokens_of(std::size_t stream) const {
  const std::uint64_t used = windows_of(stream) * seq_len_;
  return stream_tokens_[stream] - (used == 0 ? 0 : used + 1);
}

std::uint64_t window_map::unused_tokens() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < stream_tokens_.size(); ++i) sum += unused_tokens_of(i);
  return sum;
}

window_place window_map::place_of(std::uint64_t window) const {
  ensure(window < windows(), "a window behind the last one was asked for");
  const auto after = std::upper_bound(windows_before_.begin(), windows_before_.end(), window);
  const auto stream = static_cast<std::size_t>(after - windows_before_.begin() - 1);
  return {stream, (window - windows_before_[stream]) * seq_len_};
}

}  // namespace troupe::model::data
