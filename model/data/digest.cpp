#include "model/data/digest.hpp"

#include <algorithm>
#include <vector>

namespace troupe::model::data {
namespace {

constexpr std::uint64_t whole_limit_tokens = (std::uint64_t{64} << 20) / sizeof(std::uint32_t);
constexpr std::uint64_t pieces = 1024;
constexpr std::uint64_t piece_tokens = whole_limit_tokens / pieces;

}  // namespace

result<hash128> window_digest(const token_store& store, const window_map& windows) {
  const std::uint64_t window_tokens = windows.seq_len() + 1;
  const std::uint64_t total = windows.windows() * window_tokens;
  hasher hash;
  hash.add_u64(windows.seq_len());
  hash.add_u64(windows.windows());

  std::vector<std::uint32_t> buffer(window_tokens);
  const auto add = [&](std::uint64_t at, std::uint64_t end) -> status {
    while (at < end) {
      const std::uint64_t skip = at % window_tokens;
      const std::uint64_t n = std::min(window_tokens - skip, end - at);
      const auto part = std::span(buffer).first(n);
      const window_place place = windows.place_of(at / window_tokens);
      if (auto got = store.read(place.stream, place.first_token + skip, part); !got) return got;
      hash.add(std::as_bytes(part));
      at += n;
    }
    return done{};
  };

  if (total <= whole_limit_tokens) {
    if (auto added = add(0, total); !added) return added.failure();
    return hash.finish();
  }
  const std::uint64_t range = total - piece_tokens, gaps = pieces - 1;
  for (std::uint64_t i = 0; i < pieces; ++i) {
    const std::uint64_t start = range / gaps * i + range % gaps * i / gaps;  // never overflows
    if (auto added = add(start, start + piece_tokens); !added) return added.failure();
  }
  return hash.finish();
}

}  // namespace troupe::model::data
