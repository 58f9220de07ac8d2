// Worlds that lose members, get them back and grow, and train to the same bits.
#include <gmock/gmock.h>

#include "actors/sim/invariants.hpp"
#include "actors/sim/world.hpp"

namespace troupe::actors::sim {
namespace {

using namespace std::chrono_literals;

struct elastic : testing::Test {
  world_settings s;
  std::unique_ptr<invariants> checked;
  std::unique_ptr<world> w;

  world& start() {
    checked = std::make_unique<invariants>(s.toy, s.steps);
    w = std::make_unique<world>(s, *checked);
    checked->watch([this](member_id id) -> const toy_computation& { return w->device(id.value); });
    checked->watch_lives([this](member_id id) { return w->life(id.value); });
    return *w;
  }
  // The steps that have been recorded by then.
  void run_until_step(std::uint64_t step) {
    while (w->lines().size() < step && w->now() < 60s && w->step_on()) {
    }
    ASSERT_GE(w->lines().size(), step);
  }
  void expect_same_bits(std::size_t living) {
    w->run(600s);
    if (!checked->first()) checked->check_end(w->store());
    EXPECT_FALSE(checked->first()) << checked->first()->text();
    std::size_t ended_well = 0;
    for (std::size_t i = 0; i < w->size(); ++i) {
      if (!w->lives(i) && !w->ended(i)) continue;
      const auto& how = w->ended(i);
      if (how && how->code == exit_code::ok) ++ended_well;
      if (how && how->code != exit_code::ok) ADD_FAILURE() << "member " << i << ": " << how->why;
    }
    EXPECT_EQ(ended_well, living);
  }
};

TEST_F(elastic, goes_on_without_a_member_that_was_killed) {
  s.members = 4;
  s.steps = 30;
  start();
  run_until_step(8);
  w->kill(2, 3ms);
  expect_same_bits(3);
  EXPECT_EQ(w->store().plans.size(), 3u);  // start, loss, promotion of copies
}

TEST_F(elastic, goes_on_without_its_coordinator) {
  s.members = 4;
  s.steps = 30;
  start();
  run_until_step(8);
  w->kill(0, 3ms);
  expect_same_bits(3);
  EXPECT_NE(w->store().plans.back().coordinator, member_id(0));
}

TEST_F(elastic, takes_a_killed_member_back) {
  s.members = 4;
  s.steps = 40;
  start();
  run_until_step(8);
  w->kill(3, 3ms);
  run_until_step(12);
  w->revive(3);
  expect_same_bits(4);
  EXPECT_EQ(w->store().plans.back().members.size(), 4u);
}

TEST_F(elastic, grows_from_one_to_four) {
  s.members = 1;
  s.steps = 60;
  start();
  for (const std::uint64_t step : {5u, 15u, 25u}) {
    run_until_step(step);
    w->add_member();
  }
  expect_same_bits(4);
  EXPECT_EQ(w->store().plans.back().members.size(), 4u);
  EXPECT_GT(w->store().plans.back().members.at(3).leaves, 0u);
}

TEST_F(elastic, lets_a_member_leave_that_was_told_to_and_redoes_no_step) {
  for (const std::size_t leaver : {std::size_t{2}, std::size_t{0}}) {  // 0 coordinates
    SCOPED_TRACE(testing::Message() << "member " << leaver);
    s.members = 4;
    s.steps = 200;
    start();
    run_until_step(8);
    w->stop(leaver, "Terminated");
    w->run(600s);
    ASSERT_TRUE(w->ended(leaver));
    EXPECT_EQ(w->ended(leaver)->code, exit_code::interrupted) << w->ended(leaver)->why;
    if (!checked->first()) checked->check_end(w->store());
    EXPECT_FALSE(checked->first()) << checked->first()->text();
    EXPECT_EQ(w->store().plans.back().members.size(), 3u);
    EXPECT_FALSE(w->store().plans.back().exposed) << w->store().plans.back().reason;
    for (std::size_t i = 0; i < 4; ++i) {
      if (i == leaver) continue;
      ASSERT_TRUE(w->ended(i));
      EXPECT_EQ(w->ended(i)->code, exit_code::ok) << i << ": " << w->ended(i)->why;
      for (const auto& [plan, change] : w->records(i).changes) {
        EXPECT_FALSE(change.step_redone) << "plan " << plan.value;
        EXPECT_TRUE(change.lost.empty()) << "plan " << plan.value;
      }
    }
  }
}

TEST_F(elastic, stops_the_run_when_all_are_told_to_leave) {
  s.members = 3;
  s.steps = 500;
  start();
  run_until_step(8);
  for (std::size_t i = 0; i < 3; ++i) w->stop(i, "Terminated");
  w->run(600s);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(w->ended(i));
    EXPECT_EQ(w->ended(i)->code, exit_code::interrupted) << w->ended(i)->why;
  }
  EXPECT_EQ(w->store().plans.size(), 1u);
  EXPECT_EQ(w->store().saves.size(), 1u);
}

}  // namespace
}  // namespace troupe::actors::sim
