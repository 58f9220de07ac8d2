#include "actors/protocol/neighbours.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/actors/protocol/random_world.hpp"

namespace troupe::actors::protocol {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::uint32_t> numbers(const std::vector<member_id>& ids) {
  std::vector<std::uint32_t> plain;
  for (const member_id id : ids) plain.push_back(id.value);
  return plain;
}

// Members 0, 10, 20, ...; 0 coordinates.
plan ring(std::uint32_t count) {
  plan p;
  for (std::uint32_t i = 0; i < count; ++i) p.members.emplace_back().id = member_id(i * 10);
  return p;
}

TEST(neighbours, of_a_member_alone_are_none) {
  EXPECT_THAT(watched(ring(1), member_id(0)), IsEmpty());
  EXPECT_THAT(neighbours(ring(1), member_id(0)), IsEmpty());
}

TEST(neighbours, of_two_members_are_each_other_once) {
  EXPECT_THAT(numbers(watched(ring(2), member_id(0))), ElementsAre(10));
  EXPECT_THAT(numbers(watched(ring(2), member_id(10))), ElementsAre(0));
}

TEST(neighbours, on_the_ring_are_watched_and_the_coordinator_watches_all) {
  EXPECT_THAT(numbers(watched(ring(6), member_id(20))), ElementsAre(0, 10, 30));
  EXPECT_THAT(numbers(watched(ring(6), member_id(50))), ElementsAre(0, 40));
  EXPECT_THAT(numbers(watched(ring(6), member_id(0))), ElementsAre(10, 20, 30, 40, 50));
}

TEST(neighbours, are_those_who_hold_a_block_together_but_not_two_backups_of_it) {
  plan p = ring(7);
  p.placement = {{0, 0, 1, member_id(20), {member_id(40), member_id(60)}}};
  EXPECT_THAT(numbers(neighbours(p, member_id(20))), ElementsAre(0, 10, 30, 40, 60));
  EXPECT_THAT(numbers(neighbours(p, member_id(40))), ElementsAre(0, 20, 30, 50));
}

TEST(neighbours, of_a_stranger_are_a_defect) {
  EXPECT_DEATH((void)watched(ring(3), member_id(5)), "a stranger asked");
}

TEST(neighbours, are_mutual_and_include_whoever_is_watched_in_any_plan) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    const plan p = make_plan(random_world(seed).world());
    for (const plan_member& m : p.members) {
      const std::vector<member_id> near = neighbours(p, m.id);
      EXPECT_TRUE(std::ranges::is_sorted(near));
      EXPECT_EQ(std::ranges::adjacent_find(near), near.end());
      EXPECT_FALSE(std::ranges::binary_search(near, m.id));
      EXPECT_TRUE(std::ranges::includes(near, watched(p, m.id)));
      for (const member_id other : near) {
        EXPECT_TRUE(std::ranges::binary_search(neighbours(p, other), m.id));
      }
      for (const member_id other : watched(p, m.id)) {
        EXPECT_TRUE(std::ranges::binary_search(watched(p, other), m.id));
      }
    }
  }
}

}  // namespace
}  // namespace troupe::actors::protocol
