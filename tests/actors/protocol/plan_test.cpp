#include "actors/protocol/plan.hpp"

#include <gmock/gmock.h>

namespace troupe::actors::protocol {
namespace {

using testing::ElementsAre;

plan three_members() {
  plan p;
  for (std::uint32_t id : {0u, 2u, 5u}) p.members.emplace_back().id = member_id(id);
  p.members[0].leaves = 3;
  p.members[1].first_leaf = 3;
  p.members[1].leaves = 5;
  p.virtual_ranks = 8;
  p.placement = {{0, 0, 2, member_id(0), {member_id(2)}},
                 {0, 2, 1, member_id(2), {member_id(0), member_id(5)}},
                 {1, 0, 1, member_id(5), {}}};
  return p;
}

TEST(plan, finds_members_and_holders) {
  const plan p = three_members();
  EXPECT_EQ(p.find(member_id(2))->id, member_id(2));
  EXPECT_EQ(p.find(member_id(1)), nullptr);
  EXPECT_EQ(p.find(member_id(9)), nullptr);
  EXPECT_EQ(p.holders_of({0, 1}).primary, member_id(0));
  EXPECT_EQ(p.holders_of({0, 2}).primary, member_id(2));
  EXPECT_EQ(p.holders_of({1, 0}).primary, member_id(5));
}

TEST(plan, a_block_that_nobody_holds_is_a_defect) {
  EXPECT_DEATH((void)three_members().holders_of({0, 3}), "does not place");
  EXPECT_DEATH((void)three_members().holders_of({1, 1}), "does not place");
  EXPECT_DEATH((void)plan().holders_of({0, 0}), "does not place");
}

TEST(plan, lists_what_a_member_holds_and_completes) {
  const plan p = three_members();
  EXPECT_THAT(blocks_primary(p, member_id(0)), ElementsAre(block_id{0, 0}, block_id{0, 1}));
  EXPECT_THAT(blocks_backed_up(p, member_id(5)), ElementsAre(block_id{0, 2}));
  EXPECT_THAT(nodes_of(p, p.members[0]), ElementsAre(tree_node{0, 2}, tree_node{2, 1}));
  EXPECT_THAT(nodes_of(p, p.members[2]), ElementsAre());
}

}  // namespace
}  // namespace troupe::actors::protocol
