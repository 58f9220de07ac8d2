#include "actors/protocol/plan_change.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/actors/protocol/random_world.hpp"

namespace troupe::actors::protocol {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

bool holds(const plan& p, member_id id, block_id block) {
  const placed_blocks& part = p.holders_of(block);
  return part.primary == id || std::ranges::binary_search(part.backups, id);
}

class plan_change : public testing::Test {
 protected:
  void SetUp() override {
    before = make_plan(in);
    in.previous = before;
    in.number = generation(1);
  }
  // Who holds a block by the present plan, and is the same process still.
  has_block had() const {
    return [this](member_id id, block_id block) {
      return before.find(id) != nullptr && holds(before, id, block);
    };
  }
  plan published(const plan& aim, const has_block& has) {
    auto made = publishable(aim, before, has, "a loss");
    EXPECT_TRUE(std::holds_alternative<plan>(made));
    return std::get<plan>(made);
  }

  planner_input in = equal_world(4, 64, 4, 16, 1);
  plan before;
};

TEST_F(plan_change, after_a_loss_only_those_who_have_a_block_hold_it) {
  in.candidates.erase(in.candidates.begin() + 2);
  const plan aim = make_plan(in);
  const plan now = published(aim, had());
  EXPECT_EQ(now.members, aim.members);
  EXPECT_EQ(now.number, generation(1));
  for (const placed_blocks& b : block_by_block(now)) {
    const block_id block{b.layer, b.first_block};
    EXPECT_TRUE(holds(before, b.primary, block));
    for (member_id id : b.backups) EXPECT_TRUE(holds(before, id, block));
  }
  EXPECT_TRUE(now.exposed);
  EXPECT_THAT(now.reason, HasSubstr("a loss; exposed: block"));
  // Once the copies are made and verified, the aim is what can be published.
  const auto copies = copies_to(aim, now);
  EXPECT_FALSE(copies.empty());
  for (const block_copy& c : copies) {
    EXPECT_TRUE(holds(aim, c.to, c.block));
    EXPECT_FALSE(holds(now, c.to, c.block));
    EXPECT_EQ(c.from, now.holders_of(c.block).primary);
  }
  const plan last = published(aim, [&](member_id id, block_id block) {
    return holds(now, id, block) || std::ranges::any_of(copies, [&](const block_copy& c) {
             return c.to == id && c.block == block;
           });
  });
  EXPECT_EQ(last.placement, aim.placement);
  EXPECT_TRUE(copies_to(aim, last).empty());
}

TEST_F(plan_change, a_newcomer_without_copies_takes_no_block_from_anybody) {
  candidate newcomer = in.candidates[0];
  newcomer.id = member_id(9);
  newcomer.host = "host9";
  in.candidates.push_back(newcomer);
  const plan aim = make_plan(in);
  const plan now = published(aim, had());
  EXPECT_EQ(now.placement, before.placement);
  EXPECT_FALSE(now.exposed);
  EXPECT_EQ(now.reason, "a loss");
  EXPECT_GT(now.find(member_id(9))->leaves, 0u);  // it computes at once
  for (const block_copy& c : copies_to(aim, now)) EXPECT_EQ(c.to, member_id(9));
}

TEST_F(plan_change, blocks_that_nobody_has_are_named) {
  const plan aim = make_plan(in);
  const auto made = publishable(
      aim, before,
      [&](member_id id, block_id block) {
        return block != block_id{1, 3} && holds(before, id, block);
      },
      "");
  ASSERT_TRUE(std::holds_alternative<std::vector<block_id>>(made));
  EXPECT_THAT(std::get<std::vector<block_id>>(made), ElementsAre(block_id{1, 3}));
}

TEST_F(plan_change, what_an_unlisted_member_has_does_not_count) {
  const block_id block{0, 0};
  const member_id owner = before.holders_of(block).primary;
  in.candidates.erase(std::ranges::find(in.candidates, owner, &candidate::id));
  const plan aim = make_plan(in);
  const auto made = publishable(
      aim, before, [&](member_id id, block_id) { return id == owner; }, "");
  EXPECT_TRUE(std::holds_alternative<std::vector<block_id>>(made));
}

TEST_F(plan_change, any_holder_serves_where_neither_aim_nor_plan_know_one) {
  const plan aim = make_plan(in);
  const plan now = published(aim, [](member_id id, block_id) { return id == member_id(3); });
  for (const placed_blocks& b : now.placement) {
    EXPECT_EQ(b.primary, member_id(3));
    EXPECT_TRUE(b.backups.empty());
  }
}

TEST_F(plan_change, random_worlds_lose_no_block_on_the_way) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    random_world random(seed);
    in = random.world();
    if (in.backups == 0 || in.candidates.size() < 3) continue;
    before = make_plan(in);
    in.previous = before;
    const std::uint32_t gone = random.below(static_cast<std::uint32_t>(in.candidates.size()));
    in.candidates.erase(in.candidates.begin() + gone);
    const plan aim = make_plan(in);
    const auto made = publishable(aim, before, had(), "");
    if (!std::holds_alternative<plan>(made)) {
      EXPECT_EQ(before.placement.front().backups.size(), 0u) << seed;  // there was one holder only
      continue;
    }
    const plan& now = std::get<plan>(made);
    for (const placed_blocks& b : block_by_block(now)) {
      const placed_blocks& old = before.holders_of({b.layer, b.first_block});
      std::size_t alive = aim.find(old.primary) != nullptr ? 1 : 0;
      for (member_id id : old.backups) alive += aim.find(id) != nullptr ? 1 : 0;
      EXPECT_GE(b.backups.size() + 1,
                std::min(alive, aim.holders_of({b.layer, b.first_block}).backups.size() + 1))
          << seed;
    }
  }
}

}  // namespace
}  // namespace troupe::actors::protocol
