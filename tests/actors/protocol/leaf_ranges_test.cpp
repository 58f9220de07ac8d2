#include "actors/protocol/leaf_ranges.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "config/base/tree.hpp"
#include "tests/actors/protocol/random_world.hpp"

namespace troupe::actors::protocol {
namespace {

using testing::ElementsAre;

std::uint32_t worst_nodes(const std::vector<leaf_range>& ranges, std::uint32_t all) {
  std::uint32_t worst = 0;
  for (leaf_range r : ranges) worst = std::max(worst, node_count(r, all));
  return worst;
}

void expect_whole(const std::vector<leaf_range>& ranges, std::uint32_t all) {
  std::uint32_t next = 0;
  for (leaf_range r : ranges) {
    EXPECT_EQ(r.first, next);
    EXPECT_GE(r.leaves, 1u);
    next += r.leaves;
  }
  EXPECT_EQ(next, all);
}

TEST(leaf_ranges, nodes_are_counted_as_the_tree_has_them) {
  for (std::uint32_t n = 1; n <= 70; ++n) {
    for (std::uint32_t first = 0; first < n; ++first) {
      for (std::uint32_t count = 0; first + count <= n; ++count) {
        ASSERT_EQ(node_count({first, count}, n), complete_nodes(first, count, n).size())
            << first << "+" << count << " of " << n;
      }
    }
  }
}

TEST(leaf_ranges, a_split_into_powers_of_two_costs_each_member_one_node) {
  const std::vector<double> four(4, 1.0);
  EXPECT_THAT(share_leaves(16, four, usual_node_cost),
              ElementsAre(leaf_range{0, 4}, leaf_range{4, 4}, leaf_range{8, 4}, leaf_range{12, 4}));
}

TEST(leaf_ranges, some_balance_is_given_for_much_traffic) {
  for (const auto& [members, nodes] : {std::pair{3u, 2u}, {5u, 3u}, {6u, 2u}, {7u, 3u}}) {
    const std::vector<double> speeds(members, 1.0);
    const auto ranges = share_leaves(64, speeds, 2.0);
    expect_whole(ranges, 64);
    EXPECT_LE(worst_nodes(ranges, 64), nodes) << members;
    const double best = best_load(64, speeds);
    for (leaf_range r : ranges) EXPECT_LE(r.leaves, 1.125 * best) << members;
  }
}

TEST(leaf_ranges, free_nodes_leave_the_load_as_even_as_can_be) {
  for (std::uint32_t members = 1; members <= 9; ++members) {
    const auto ranges = share_leaves(64, std::vector<double>(members, 1.0), 0);
    for (leaf_range r : ranges) EXPECT_LE(r.leaves, (64 + members - 1) / members);
  }
}

TEST(leaf_ranges, a_faster_member_gets_more) {
  const auto ranges = share_leaves(30, std::vector<double>{1, 2, 3}, 0);
  EXPECT_THAT(ranges, ElementsAre(leaf_range{0, 5}, leaf_range{5, 10}, leaf_range{15, 15}));
  const auto other_unit = share_leaves(30, std::vector<double>{1e6, 2e6, 3e6}, 0);
  EXPECT_EQ(ranges, other_unit);
}

TEST(leaf_ranges, every_leaf_is_computed_once_within_the_slack) {
  random_world random(7);
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t members = random.between(1, 20);
    const std::uint32_t all = members + random.below(random.chance(4) ? 400 : 40);
    std::vector<double> speeds;
    for (std::uint32_t i = 0; i < members; ++i) speeds.push_back(0.25 + random.below(16) / 8.0);
    const auto ranges = share_leaves(all, speeds, random.below(4) * 0.1);
    ASSERT_EQ(ranges.size(), members);
    expect_whole(ranges, all);
    const double limit = 1.125 * best_load(all, speeds) + 1e-6;
    for (std::uint32_t i = 0; i < members; ++i) EXPECT_LE(ranges[i].leaves / speeds[i], limit);
  }
}

TEST(leaf_ranges, large_numbers_of_virtual_ranks_are_cut_coarsely_but_wholly) {
  const std::vector<double> speeds{1, 1.5, 0.75};
  const auto ranges = share_leaves(1u << 20, speeds, usual_node_cost);
  expect_whole(ranges, 1u << 20);
  const double best = best_load(1u << 20, speeds);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LE(ranges[i].leaves / speeds[i], 1.13 * best);
}

TEST(leaf_ranges, all_compute_but_the_slowest_of_too_many) {
  EXPECT_THAT(who_computes(4, std::vector<double>{1, 1, 1}), ElementsAre(0, 1, 2));
  EXPECT_THAT(who_computes(3, std::vector<double>{1, 0.5, 2, 1, 0.9}), ElementsAre(0, 2, 3));
  EXPECT_THAT(who_computes(2, std::vector<double>{1, 1, 1}), ElementsAre(0, 1));
}

TEST(leaf_ranges, who_would_only_hold_up_the_others_does_not_compute) {
  EXPECT_THAT(who_computes(8, std::vector<double>{1, 0.1}), ElementsAre(0));
  EXPECT_THAT(who_computes(8, std::vector<double>{1, 0.13}), ElementsAre(0, 1));
  EXPECT_THAT(who_computes(8, std::vector<double>{0.01}), ElementsAre(0));
}

}  // namespace
}  // namespace troupe::actors::protocol
