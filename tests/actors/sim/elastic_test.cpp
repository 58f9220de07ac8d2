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

  std::uint32_t min_members = 1;
  std::chrono::nanoseconds wait_for_members = 600s, link_first = 0s;

  world& start() {
    checked = std::make_unique<invariants>(s.toy, s.steps);
    world_parts parts = usual_parts();
    parts.adjust = [this, usual = parts.adjust](member_id id, worker_settings& settings,
                                                introductions_settings& gate) {
      usual(id, settings, gate);
      settings.min_members = min_members;
      settings.wait_for_members = wait_for_members;
      settings.link_first = link_first;
    };
    w = std::make_unique<world>(s, *checked, parts);
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

TEST_F(elastic, a_drained_member_ends_with_0_and_the_others_finish_without_it) {
  for (const std::vector<std::size_t>& leavers :
       {std::vector<std::size_t>{2}, std::vector<std::size_t>{0}, std::vector<std::size_t>{3, 2, 1},
        std::vector<std::size_t>{0, 1, 2}}) {
    SCOPED_TRACE(testing::PrintToString(leavers));
    s.members = 4;
    s.steps = 300;
    start();
    run_until_step(8);
    for (const std::size_t i : leavers) w->drain(i, "drained");
    expect_same_bits(4);
    EXPECT_EQ(w->store().plans.back().members.size(), 4 - leavers.size());
    EXPECT_EQ(w->store().saves.size(), 1u);
    for (const std::size_t i : leavers) {
      EXPECT_FALSE(w->store().plans.back().find(member_id(static_cast<std::uint32_t>(i))));
    }
    for (std::size_t i = 0; i < 4; ++i) {
      for (const auto& [plan, change] : w->records(i).changes) {
        EXPECT_FALSE(change.step_redone) << "plan " << plan.value;
        EXPECT_TRUE(change.lost.empty()) << "plan " << plan.value;
      }
    }
  }
}

TEST_F(elastic, drains_alone_never_stop_a_run_and_leave_once_somebody_else_is_there) {
  s.members = 2;
  s.steps = 400;
  start();
  run_until_step(8);
  w->drain(1, "drained");
  w->kill(0, 3ms);
  run_until_step(60);
  EXPECT_TRUE(w->lives(1));
  w->revive(0);
  w->run(600s);
  ASSERT_TRUE(w->ended(1));
  EXPECT_EQ(w->ended(1)->code, exit_code::ok) << w->ended(1)->why;
  EXPECT_FALSE(w->store().plans.back().find(member_id(1)));
  ASSERT_TRUE(w->ended(0));
  EXPECT_EQ(w->ended(0)->code, exit_code::ok) << w->ended(0)->why;
  EXPECT_EQ(w->lines().size(), 400u);
}

TEST_F(elastic, a_member_that_is_drained_before_there_is_a_plan_leaves_with_the_first) {
  for (const std::size_t leaver : {std::size_t{1}, std::size_t{0}}) {  // 0 convenes
    s.members = 3;
    s.steps = 200;
    start();
    w->drain(leaver, "drained");
    expect_same_bits(3);
    EXPECT_EQ(w->store().plans.back().members.size(), 2u);
  }
}

TEST_F(elastic, waits_with_too_few_members_and_goes_on_when_there_are_enough) {
  for (const std::size_t victim : {std::size_t{2}, std::size_t{0}}) {  // 0 coordinates
    SCOPED_TRACE(testing::Message() << "member " << victim);
    s.members = 3;
    s.steps = 60;
    min_members = 3;
    start();
    run_until_step(8);
    w->kill(victim, 3ms);
    const auto killed = w->now();
    while (w->now() < killed + 20s && w->step_on()) {
    }
    const std::size_t then = w->lines().size();
    EXPECT_LE(then, 10u);
    const std::size_t leads = victim == 0 ? 1 : 0;
    EXPECT_FALSE(w->records(leads).waits_for.empty());
    EXPECT_FALSE(w->store().plans.back().exposed)
        << "copies are made meanwhile: " << w->store().plans.back().reason;
    EXPECT_LE(w->store().plans.size(), 4u) << "waiting makes no plans";
    w->revive(victim);
    expect_same_bits(3);
    ASSERT_EQ(w->records(leads).waited.size(), 1u);
    EXPECT_NEAR(w->records(leads).waited.front(), 20, 1.5);
    EXPECT_EQ(w->lines().size(), 60u);
  }
}

TEST_F(elastic, begins_with_too_few_members_and_waits_for_those_who_come) {
  s.members = 1;
  s.steps = 40;
  min_members = 3;
  start();
  w->run(5s);
  EXPECT_TRUE(w->lines().empty());
  w->add_member();
  w->add_member();
  expect_same_bits(3);
  EXPECT_EQ(w->lines().size(), 40u);
}

TEST_F(elastic, gives_up_with_69_when_nobody_comes) {
  s.members = 2;
  s.steps = 4000;
  min_members = 2;
  wait_for_members = 30s;
  start();
  run_until_step(8);
  w->kill(1, 3ms);
  const auto killed = w->now();
  w->run(600s);
  ASSERT_TRUE(w->ended(0));
  EXPECT_EQ(w->ended(0)->code, exit_code::too_few);
  EXPECT_THAT(w->ended(0)->why, testing::HasSubstr("elastic.wait_timeout_seconds"));
  EXPECT_LT(w->now() - killed, 35s);
}

TEST_F(elastic, a_run_that_waits_for_members_can_be_stopped_and_saves) {
  s.members = 3;
  s.steps = 4000;
  min_members = 3;
  start();
  run_until_step(8);
  w->kill(2, 3ms);
  const auto killed = w->now();
  while (w->now() < killed + 10s && w->step_on()) {
  }
  w->stop(0, "Terminated");
  w->stop(1, "Terminated");
  w->run(600s);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(w->ended(i));
    EXPECT_EQ(w->ended(i)->code, exit_code::interrupted) << w->ended(i)->why;
  }
  EXPECT_EQ(w->store().saves.size(), 1u);
}

TEST_F(elastic, loses_another_one_while_it_waits_and_goes_on_all_the_same) {
  s.members = 4;
  s.steps = 60;
  min_members = 4;
  start();
  run_until_step(8);
  w->kill(3, 3ms);
  auto then = w->now();
  while (w->now() < then + 5s && w->step_on()) {
  }
  w->kill(0, 3ms);
  then = w->now();
  while (w->now() < then + 5s && w->step_on()) {
  }
  w->revive(0);
  w->revive(3);
  expect_same_bits(4);
  EXPECT_EQ(w->lines().size(), 60u);
}

TEST_F(elastic, who_joins_has_its_links_before_the_change_and_others_come_in_with_it) {
  s.members = 3;
  s.steps = 300;
  link_first = 50ms;
  start();
  run_until_step(8);
  w->add_member();
  w->add_member();
  expect_same_bits(5);
  EXPECT_EQ(w->store().plans.size(), 3u) << "both come in by one plan, and their copies by another";
}

TEST_F(elastic, whoever_has_come_is_let_in_by_the_next_coordinator_if_the_first_is_lost) {
  link_first = 50ms;
  for (const auto after : {1ms, 5ms, 20ms, 49ms, 51ms, 60ms}) {
    SCOPED_TRACE(after.count());
    s.members = 3;
    s.steps = 600;
    start();
    run_until_step(8);
    w->add_member();
    const auto came = w->now();
    while (w->now() < came + after && w->step_on()) {
    }
    w->kill(0, 3ms);
    expect_same_bits(3);
    EXPECT_NE(w->store().plans.back().find(member_id(3)), nullptr);
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
