#include "actors/chaos/promise.hpp"

#include <gmock/gmock.h>

#include "tests/actors/chaos/small_world.hpp"

namespace troupe::actors::chaos {
namespace {

using testing::HasSubstr;

member_id m(std::uint32_t n) { return member_id(n); }

std::vector<link> both_ways(std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> pairs) {
  std::vector<link> all;
  for (const auto& [a, b] : pairs) {
    all.push_back({m(a), m(b)});
    all.push_back({m(b), m(a)});
  }
  return all;
}

TEST(promise, covers_one_loss_and_not_both_holders_of_a_block) {
  const world_view w = world_of(4);
  EXPECT_EQ(breaks_promise(w, {{m(1)}, {}}, {}), "");
  EXPECT_EQ(breaks_promise(w, {{m(0), m(2)}, {}}, {}), "") << "they share no block";
  EXPECT_THAT(breaks_promise(w, {{m(1), m(2)}, {}}, {}),
              HasSubstr("block 1 (layer 1, block 0) would be without a holder"));
}

TEST(promise, counts_who_is_dead_already) {
  world_view w = world_of(4);
  w.alive.erase(m(1));
  EXPECT_NE(breaks_promise(w, {{m(2)}, {}}, {}), "");
  EXPECT_EQ(breaks_promise(w, {{m(3)}, {}}, {}), "");
}

TEST(promise, counts_a_copy_only_once_it_is_whole) {
  world_view w = world_of(4);
  w.unfinished.insert({m(2), {1, 0}});
  EXPECT_NE(breaks_promise(w, {{m(1)}, {}}, {}), "");
  w.unfinished.clear();
  EXPECT_EQ(breaks_promise(w, {{m(1)}, {}}, {}), "");
}

TEST(promise, lets_go_what_may_be_lost) {
  const world_view w = world_of(4);
  EXPECT_EQ(breaks_promise(w, {{m(1), m(2)}, {}}, {1}), "");
  EXPECT_NE(breaks_promise(w, {{m(1), m(2)}, {}}, {2}), "");
}

TEST(promise, never_covers_the_last_member) {
  EXPECT_NE(breaks_promise(world_of(1), {{m(0)}, {}}, {}), "");
}

TEST(promise, covers_a_cut_while_one_side_holds_everything) {
  const world_view w = world_of(4);
  EXPECT_EQ(breaks_promise(w, {{}, both_ways({{3, 0}, {3, 1}, {3, 2}})}, {}), "");
  // Neighbours hold each other's copies: of two halves that are neighbours none is complete.
  EXPECT_NE(breaks_promise(w, {{}, both_ways({{0, 2}, {0, 3}, {1, 2}, {1, 3}})}, {}), "");
  // Every second member: both halves are.
  EXPECT_EQ(breaks_promise(w, {{}, both_ways({{0, 1}, {0, 3}, {2, 1}, {2, 3}})}, {}), "");
}

TEST(promise, lets_either_end_of_a_broken_link_go) {
  world_view w = world_of(4);
  EXPECT_EQ(breaks_promise(w, {{}, {{m(0), m(1)}}}, {}), "") << "one direction is as bad as both";
  w.alive.erase(m(2));
  EXPECT_NE(breaks_promise(w, {{}, {{m(0), m(1)}}}, {}), "") << "m1 has the only copy of block 1";
}

TEST(new_copies, are_those_that_a_member_did_not_hold_before) {
  const protocol::plan before = plan_of(4);
  protocol::plan after = before;
  after.members.erase(after.members.begin() + 1);
  after.placement[0].backups = {m(2)};
  after.placement[1].primary = m(2);
  after.placement[1].backups = {m(3)};
  using testing::Pair;
  EXPECT_THAT(new_copies(before, after),
              testing::ElementsAre(Pair(m(2), protocol::block_id{0, 0}),
                                   Pair(m(3), protocol::block_id{1, 0})));
}

TEST(new_copies, count_everything_of_a_new_life_in_an_old_slot) {
  const protocol::plan before = plan_of(3);
  protocol::plan after = before;
  after.members[1].life = incarnation(999);
  EXPECT_EQ(new_copies(before, after).size(), 2u);
  EXPECT_TRUE(new_copies(before, before).empty());
}

}  // namespace
}  // namespace troupe::actors::chaos
