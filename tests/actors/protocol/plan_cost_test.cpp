#include "actors/protocol/plan_cost.hpp"

#include <gmock/gmock.h>

#include <numeric>

namespace troupe::actors::protocol {
namespace {

// Two members compute 3 + 1 of 4 virtual ranks, a third one holds backups. Layer 0 is a token table
// of 100 + 10 elements, of which 60 are tied; layer 1 has 1000.
class plan_cost : public testing::Test {
 protected:
  plan_cost() {
    for (std::uint32_t id : {0u, 1u, 2u}) p.members.emplace_back().id = member_id(id);
    p.members[0].leaves = 3;
    p.members[1].first_leaf = 3;
    p.members[1].leaves = 1;
    p.virtual_ranks = 4;
    p.placement = {{0, 0, 1, member_id(0), {member_id(2)}},
                   {0, 1, 1, member_id(1), {member_id(2)}},
                   {1, 0, 1, member_id(1), {member_id(0)}}};
  }
  plan p;
  model_sizes sizes{{{100, 60}, {10, 0}}, {{1000, 0}}};
};

TEST_F(plan_cost, counts_what_is_held) {
  const auto costs = predict(p, sizes, {});
  ASSERT_EQ(costs.size(), 3u);
  EXPECT_EQ(costs[0].primary_blocks, 1u);
  EXPECT_EQ(costs[0].backup_blocks, 1u);
  EXPECT_EQ(costs[0].primary_elements, 100u);
  EXPECT_EQ(costs[0].backup_elements, 1000u);
  EXPECT_EQ(costs[1].primary_elements, 1010u);
  EXPECT_EQ(costs[2].backup_blocks, 2u);
  EXPECT_EQ(costs[2].backup_elements, 110u);
  EXPECT_EQ(costs[0].nodes, 2u);
  EXPECT_EQ(costs[2].nodes, 0u);
}

TEST_F(plan_cost, holds_by_kind) {
  const auto costs = predict(p, sizes, {});
  EXPECT_EQ(costs[0].holds, (held_bytes{.parameters = 4 * 1110,
                                        .moments = 8 * 1100,
                                        .sums = 8 * 1100,
                                        .nodes = 4 * 2 * 1170,
                                        .slots = 4 * 1 * 160}));
  EXPECT_EQ(
      costs[2].holds,
      (held_bytes{
          .parameters = 4 * 110, .moments = 8 * 110, .sums = 8 * 110, .nodes = 0, .slots = 0}));
  EXPECT_EQ(costs[0].holds.total(), 4u * 1110 + 16 * 1100 + 8 * 1170 + 640);
}

TEST_F(plan_cost, sends_nodes_sums_and_parameters) {
  const auto costs = predict(p, sizes, {});
  // Two nodes of everything but its own 100 + 60; its sum to one backup; parameters to member 1,
  // which computes and does not hold the block.
  EXPECT_EQ(costs[0].sends, (sent_bytes{.nodes = 4 * 2 * 1010, .sums = 400, .parameters = 400}));
  // One node of the tied table, twice where it is tied; two sums; block 1 of layer 0 to member 0,
  // which holds the other one itself.
  EXPECT_EQ(costs[1].sends, (sent_bytes{.nodes = 4 * 160, .sums = 4 * 1010, .parameters = 40}));
  EXPECT_EQ(costs[2].sends.total(), 0u);
}

TEST_F(plan_cost, names_who_is_waited_for) {
  const auto alike = predict(p, sizes, {});
  EXPECT_DOUBLE_EQ(alike[0].busy, 1.0);
  EXPECT_DOUBLE_EQ(alike[1].busy, 1.0 / 3);
  EXPECT_DOUBLE_EQ(alike[2].busy, 0.0);
  const auto slow = predict(p, sizes, std::vector<double>{3, 0.5, 1});
  EXPECT_DOUBLE_EQ(slow[0].busy, 0.5);
  EXPECT_DOUBLE_EQ(slow[1].busy, 1.0);
}

TEST_F(plan_cost, a_lone_member_sends_nothing) {
  p.members.resize(1);
  p.members[0].leaves = 4;
  p.placement = {{0, 0, 2, member_id(0), {}}, {1, 0, 1, member_id(0), {}}};
  const auto costs = predict(p, sizes, {});
  EXPECT_EQ(costs[0].sends.total(), 0u);
  EXPECT_EQ(costs[0].holds.slots, 0u);
  EXPECT_EQ(costs[0].nodes, 1u);
}

}  // namespace
}  // namespace troupe::actors::protocol
