#include "config/base/mixing.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace troupe {
namespace {

TEST(mixing, is_the_known_finaliser_so_that_seeds_keep_their_meaning) {
  // The first outputs of splitmix64 from state 0.
  EXPECT_EQ(mixed(0x9e3779b97f4a7c15ULL), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(mixed(2 * 0x9e3779b97f4a7c15ULL), 0x6e789e6aa1b965f4ULL);
}

TEST(mixing, tells_the_order_of_its_arguments_and_the_ends_of_texts) {
  EXPECT_NE(mixed(1, 2), mixed(2, 1));
  EXPECT_NE(mixed(1, "ab"), mixed(1, "ba"));
  EXPECT_NE(mixed(1, ""), mixed(1, std::string_view("\0", 1)));
}

TEST(mixing, changes_half_of_the_bits_when_one_changes) {
  int changed = 0;
  for (int bit = 0; bit < 64; ++bit) {
    changed += std::popcount(mixed(5, 7) ^ mixed(5, 7 ^ (std::uint64_t{1} << bit)));
  }
  EXPECT_NEAR(changed / 64.0, 32, 2);
}

TEST(mixing, spreads_numbers_over_the_whole_range) {
  std::set<std::uint64_t> seen;
  double sum = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    seen.insert(below(mixed(1, i), 7));
    sum += unit_interval(mixed(1, i));
  }
  EXPECT_EQ(seen, (std::set<std::uint64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_NEAR(sum / 1000, 0.5, 0.03);
  EXPECT_LT(unit_interval(~std::uint64_t{0}), 1.0);
}

}  // namespace
}  // namespace troupe
