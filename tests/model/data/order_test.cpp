#include "model/data/order.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <vector>

namespace troupe::model::data {
namespace {

std::vector<std::uint64_t> epoch(const window_order& order, std::uint64_t number) {
  std::vector<std::uint64_t> windows(order.windows());
  for (std::uint64_t i = 0; i < windows.size(); ++i)
    windows[i] = order.window_at(number * order.windows() + i);
  return windows;
}

bool is_permutation_of_all(const std::vector<std::uint64_t>& windows) {
  std::vector<bool> seen(windows.size());
  for (std::uint64_t w : windows) {
    if (w >= seen.size() || seen[w]) return false;
    seen[w] = true;
  }
  return true;
}

TEST(window_order, holds_every_window_once_an_epoch_for_all_small_sizes) {
  for (std::uint64_t n = 1; n <= 300; ++n)
    for (std::uint64_t e = 0; e < 3; ++e)
      ASSERT_TRUE(is_permutation_of_all(epoch(window_order(n, n * 77 + 1, true), e)))
          << n << " windows, epoch " << e;
}

TEST(window_order, holds_every_window_once_around_powers_of_two_and_for_primes) {
  for (int k = 9; k <= 17; ++k)
    for (std::int64_t d = -1; d <= 1; ++d) {
      const std::uint64_t n = (std::uint64_t{1} << k) + d;
      ASSERT_TRUE(is_permutation_of_all(epoch(window_order(n, 5, true), 1))) << n << " windows";
    }
  for (const std::uint64_t n : {7919u, 104729u})
    ASSERT_TRUE(is_permutation_of_all(epoch(window_order(n, 6, true), 0))) << n << " windows";
}

TEST(window_order, has_no_double_among_samples_of_eight_billion_windows) {
  const std::uint64_t n = (std::uint64_t{1} << 33) + 1;
  const window_order order(n, 3, true);
  std::set<std::uint64_t> seen;
  std::uint64_t above_half = 0;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const std::uint64_t position = 5 * n + i * (n / 100000);
    const std::uint64_t w = order.window_at(position);
    ASSERT_LT(w, n);
    ASSERT_TRUE(seen.insert(w).second) << "position " << position;
    above_half += w > n / 2;
  }
  EXPECT_NEAR(static_cast<double>(above_half), 50000, 5 * 158);  // five standard deviations
}

TEST(window_order, differs_between_epochs_and_between_seeds) {
  const window_order order(100, 1234, true);
  EXPECT_NE(epoch(order, 0), epoch(order, 1));
  EXPECT_NE(epoch(order, 1), epoch(order, 2));
  EXPECT_NE(epoch(order, 0), epoch(window_order(100, 1235, true), 0));
  EXPECT_NE(epoch(order, 0), epoch(window_order(100, 1234 + (std::uint64_t{1} << 32), true), 0));
  EXPECT_NE(epoch(order, 7), epoch(order, 7 + (std::uint64_t{1} << 32)));
}

TEST(window_order, leaves_the_windows_as_they_come_without_shuffle) {
  const window_order order(5, 9, false);
  for (std::uint64_t p = 0; p < 20; ++p) EXPECT_EQ(order.window_at(p), p % 5);
  EXPECT_EQ(order.epoch_of(4), 0u);
  EXPECT_EQ(order.epoch_of(5), 1u);
}

// Even at the smallest sizes, where a Feistel network is weakest, each pair of windows must come
// first about equally often. Chi-square, in standard deviations above what chance gives; the seeds
// are fixed, so this cannot fail by chance.
TEST(window_order, lets_all_pairs_of_windows_come_first_equally) {
  for (const std::uint64_t n : {2u, 3u, 4u, 5u, 6u, 7u, 11u, 16u, 17u, 25u}) {
    const window_order order(n, 11, true);
    const int epochs = 60000;
    std::map<std::pair<std::uint64_t, std::uint64_t>, double> count;
    for (std::uint64_t e = 0; e < epochs; ++e)
      ++count[{order.window_at(e * n), order.window_at(e * n + 1)}];
    const double pairs = static_cast<double>(n * (n - 1)), expected = epochs / pairs;
    ASSERT_EQ(static_cast<double>(count.size()), pairs) << n << " windows";
    double sum = 0;
    for (const auto& [pair, times] : count)
      sum += (times - expected) * (times - expected) / expected;
    EXPECT_LT((sum - (pairs - 1)) / std::sqrt(2 * (pairs - 1)), 3.1) << n << " windows";
  }
}

// The distance between a window and the next one: nothing may be left of the order in the file.
TEST(window_order, keeps_no_neighbours_together) {
  const std::uint64_t n = 10007;
  const auto windows = epoch(window_order(n, 21, true), 0);
  int together = 0;
  for (std::uint64_t i = 1; i < n; ++i) together += windows[i] == windows[i - 1] + 1;
  EXPECT_LT(together, 8);  // one is expected
}

// What runs train on may never change by accident. The lists come from a second implementation of
// order.hpp's description, in another language.
TEST(window_order, equals_the_golden_lists) {
  const window_order order(17, 1234, true);
  EXPECT_EQ(epoch(order, 0),
            (std::vector<std::uint64_t>{1, 0, 9, 8, 13, 2, 14, 5, 16, 15, 12, 3, 11, 7, 4, 10, 6}));
  EXPECT_EQ(epoch(order, 1),
            (std::vector<std::uint64_t>{10, 14, 3, 12, 1, 11, 13, 0, 5, 4, 15, 9, 2, 16, 6, 7, 8}));
  const window_order huge((std::uint64_t{1} << 40) + 9, 0xFEDCBA9876543210u, true);
  EXPECT_EQ(huge.window_at(123456789), 260308848841u);
}

TEST(window_order, counts_positions_from_step_one) {
  EXPECT_EQ(first_position(1, 12), 0u);
  EXPECT_EQ(first_position(4, 12), 36u);
}

}  // namespace
}  // namespace troupe::model::data
