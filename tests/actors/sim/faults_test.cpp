// Networks with faults that a run survives, and members that are lost.
#include <gmock/gmock.h>

#include "actors/sim/campaign.hpp"
#include "actors/sim/invariants.hpp"

namespace troupe::actors::sim {
namespace {

using namespace std::chrono_literals;

world_settings eight() {
  world_settings s;
  s.members = 8;
  s.steps = 20;
  return s;
}

void expect_reference(const world_settings& s) {
  const seed_outcome outcome = run_seed(s);
  EXPECT_EQ(outcome.invariant, "") << outcome.what;
}

TEST(faults, late_frames_change_no_bit) {
  world_settings s = eight();
  s.network.jitter = 5ms;
  s.network.bulk_jitter = 2ms;
  expect_reference(s);
}
TEST(faults, lost_frames_change_no_bit) {
  world_settings s = eight();
  s.network.lose = 0.03;
  expect_reference(s);
}
TEST(faults, repeated_frames_change_no_bit) {
  world_settings s = eight();
  s.network.repeat = 0.3;
  expect_reference(s);
}
TEST(faults, reordered_frames_change_no_bit) {
  world_settings s = eight();
  s.network.reorder = 0.2;
  expect_reference(s);
}
TEST(faults, damaged_frames_change_no_bit) {
  world_settings s = eight();
  s.network.damage = 0.03;
  expect_reference(s);
}
TEST(faults, links_that_are_reset_again_and_again_change_no_bit) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    world_settings s = eight();
    s.seed = seed;
    s.resets = 60;
    s.resets_within = 100ms;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    expect_reference(s);
  }
}

// Runs until the first step is committed, and a little further.
void run_into_training(world& w, time_since_start until) {
  while (w.now() < until && w.step_on()) {
  }
}

TEST(faults, who_waits_for_a_plan_does_not_wait_for_ever_for_a_dead_convener) {
  world_settings s = eight();
  world_watcher nobody;
  world w(s, nobody);
  run_into_training(w, 500us);
  ASSERT_TRUE(w.store().plans.empty());
  w.kill(0, std::nullopt);
  w.run(60s);
  for (std::size_t i = 1; i < w.size(); ++i) {
    ASSERT_TRUE(w.ended(i)) << "member " << i;
    EXPECT_EQ(w.ended(i)->code, exit_code::too_few) << w.ended(i)->why;
  }
}

}  // namespace
}  // namespace troupe::actors::sim
