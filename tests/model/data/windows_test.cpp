#include "model/data/windows.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::model::data {
namespace {

std::uint64_t windows_in(std::uint64_t tokens, std::uint64_t seq_len) {
  return window_map(std::vector{tokens}, seq_len).windows();
}

TEST(window_map, needs_one_token_more_than_a_window_is_long) {
  EXPECT_EQ(windows_in(0, 4), 0u);
  EXPECT_EQ(windows_in(4, 4), 0u);
  EXPECT_EQ(windows_in(5, 4), 1u);
  EXPECT_EQ(windows_in(8, 4), 1u);
  EXPECT_EQ(windows_in(9, 4), 2u);
}

TEST(window_map, counts_every_token_as_used_or_unused) {
  for (std::uint64_t t = 1; t <= 9; ++t)
    for (std::uint64_t n = 0; n <= 60; ++n) {
      const window_map map(std::vector{n}, t);
      std::vector<bool> used(n);
      for (std::uint64_t w = 0; w < map.windows(); ++w)
        for (std::uint64_t i = 0; i <= t; ++i) used.at(map.place_of(w).first_token + i) = true;
      std::uint64_t unused = 0;
      for (bool u : used) unused += !u;
      ASSERT_EQ(map.unused_tokens(), unused) << n << " tokens, windows of " << t;
      ASSERT_LE(unused, t);
    }
}

TEST(window_map, keeps_windows_inside_their_stream) {
  const std::vector<std::uint64_t> streams = {3, 9, 0, 4, 14};
  const window_map map(streams, 4);
  ASSERT_EQ(map.windows(), 0u + 2 + 0 + 0 + 3);
  EXPECT_EQ(map.unused_tokens(), 3u + 0 + 0 + 4 + 1);
  std::vector<std::vector<std::uint64_t>> places;
  for (std::uint64_t w = 0; w < map.windows(); ++w)
    places.push_back({map.place_of(w).stream, map.place_of(w).first_token});
  EXPECT_EQ(places,
            (std::vector<std::vector<std::uint64_t>>{{1, 0}, {1, 4}, {4, 0}, {4, 4}, {4, 8}}));
}

TEST(window_map, counts_beyond_32_bits) {
  const std::uint64_t n = std::uint64_t{3} << 40;
  const window_map map(std::vector{n, n}, 1024);
  EXPECT_EQ(map.windows(), 2 * ((n - 1) / 1024));
  EXPECT_EQ(map.place_of(map.windows() - 1).stream, 1u);
  EXPECT_EQ(map.place_of(map.windows() - 1).first_token, ((n - 1) / 1024 - 1) * 1024);
}

}  // namespace
}  // namespace troupe::model::data
