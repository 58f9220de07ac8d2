#include "actors/protocol/succession.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace troupe::actors::protocol {
namespace {

using namespace std::chrono_literals;

// Members 2, 3, 5, 8, 9; 5 coordinates, 3 does not see the run directory.
plan usual() {
  plan p;
  for (const std::uint32_t id : {2u, 3u, 5u, 8u, 9u}) {
    plan_member& m = p.members.emplace_back();
    m.id = member_id(id);
    m.store = id != 3;
  }
  p.coordinator = member_id(5);
  return p;
}

std::optional<std::chrono::nanoseconds> turn(std::uint32_t self,
                                             const std::set<member_id>& gone = {}) {
  return turn_to_collect(usual(), member_id(self), gone, 1s);
}

TEST(succession, the_coordinator_collects_at_once_and_the_others_one_after_the_other) {
  EXPECT_EQ(turn(5), 0s);
  EXPECT_EQ(turn(2), 1s);
  EXPECT_EQ(turn(8), 2s);
  EXPECT_EQ(turn(9), 3s);
}

TEST(succession, who_does_not_see_the_run_directory_never_collects) {
  EXPECT_EQ(turn(3), std::nullopt);
  EXPECT_EQ(turn(3, {member_id(2), member_id(5), member_id(8), member_id(9)}), std::nullopt);
}

TEST(succession, nobody_waits_for_the_turn_of_one_who_is_gone) {
  EXPECT_EQ(turn(2, {member_id(5)}), 0s);
  EXPECT_EQ(turn(8, {member_id(5)}), 1s);
  EXPECT_EQ(turn(8, {member_id(5), member_id(2)}), 0s);
  EXPECT_EQ(turn(9, {member_id(8)}), 2s);
  EXPECT_EQ(turn(9, {member_id(3)}), 3s) << "it had no turn";
}

TEST(succession, a_stranger_to_the_plan_never_collects) { EXPECT_EQ(turn(4), std::nullopt); }

// H-30: two who begin at the same moment would race each time.
TEST(succession, no_two_living_members_have_the_same_turn) {
  for (unsigned without = 0; without < 32; ++without) {
    std::set<member_id> gone;
    const plan p = usual();
    for (unsigned i = 0; i < p.members.size(); ++i) {
      if ((without >> i & 1) != 0) gone.insert(p.members[i].id);
    }
    std::set<std::chrono::nanoseconds> turns;
    std::size_t living = 0;
    for (const plan_member& m : p.members) {
      if (gone.contains(m.id) || !m.store) continue;
      ++living;
      turns.insert(*turn_to_collect(p, m.id, gone, 1s));
    }
    EXPECT_EQ(turns.size(), living);
    if (living > 0) {
      EXPECT_EQ(*turns.begin(), 0s) << "somebody begins at once";
    }
  }
}

}  // namespace
}  // namespace troupe::actors::protocol
