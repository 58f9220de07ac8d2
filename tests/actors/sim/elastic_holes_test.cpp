// Whole worlds in the holes that a careless version of the protocol has, as far as the traces
// (elastic_traces_test) do not show them.
//
// The holes of a careless version have numbers, H-01 to H-32, which stand at the tests that cover
// them, here and in tests/actors/protocol. The others, with where they are covered:
//   H-13 impure decision       decision_test: a record is a function of votes and settings;
//                              collection_test and plan_text_test: records travel whole
//   H-14 state of the step     model_computation_test: a cancelled step gives the same bits again
//   H-15 sum order             config/base/tree_test, step_collector_test
//   H-16 other arithmetic      introductions_test: one numerics class; S-8 and S-1 in every world
//   H-17 what an ack means     held_block_test: the hash of what arrived; S-8 in every world
//   H-21 torn copy             held_block_test, exchange_test, held_blocks_test
//   H-22 vote of an attempt    router_test: older plans are dropped; step_collector_test
//   H-23 two steps apart       held_block_test; S-9 in every world
//   H-24 exclusive creation    plan_chain_test, directory_probe_test
//   H-26 directory's machine   no test: which set-up survives what is a matter of the set-up
//   H-27 old hand on a save    model/checkpoint/save_test: manifests are written once
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/actors/sim/traced_world.hpp"

namespace troupe::actors::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct elastic_holes : traced_world {};

// H-04: everything that it had in hand is of a plan that nobody acts for any more.
TEST_F(elastic_holes, a_coordinator_that_stood_still_leads_nobody_when_it_goes_on) {
  for (auto pause = 0us; pause <= 2000us; pause += 400us) {
    SCOPED_TRACE(pause / 1us);
    start();
    run_until_step(5);
    soon(pause, [&] { w->freeze(0); });
    run_until([&] { return w->store().plans.size() >= 2; });
    EXPECT_THAT(members_of_plan(1), ElementsAre(1, 2, 3));
    run_for(20ms);
    w->thaw(0);
    run_until([&] { return w->ended(0).has_value() || w->over(); });
    if (!w->somebody_finished()) start_again_who_ended();
    expect_same_bits();
    if (HasFailure()) return;
  }
}

// H-05: what it computed and was about to send when it stood still lands nowhere.
TEST_F(elastic_holes, a_member_that_stood_still_in_a_step_writes_into_no_later_one) {
  for (auto pause = 0us; pause <= 2000us; pause += 500us) {
    SCOPED_TRACE(pause / 1us);
    start();
    run_until_step(5);
    soon(pause, [&] { w->freeze(2); });
    run_until([&] { return w->store().plans.size() >= 2; });
    w->thaw(2);
    run_for(60ms);
    if (!w->somebody_finished()) start_again_who_ended();
    expect_same_bits();
    if (HasFailure()) return;
  }
}

// H-10: a fault in the middle of updates: promises wait for them, so that nobody answers for a
// block that is just being changed.
TEST_F(elastic_holes, a_loss_in_the_middle_of_updates_finds_every_block_at_one_version) {
  for (const std::uint32_t victim : {0u, 1u, 3u}) {
    for (const std::uint32_t at : {0u, 1u, 2u, 3u}) {
      SCOPED_TRACE(testing::Message() << victim << " when " << at << " updates");
      start();
      bool struck = false;
      points->applied = [&](member_id who, block_id, std::uint64_t version) {
        if (struck || version != 6 || who != member_id(at)) return;
        struck = true;
        soon(0us, [&] { w->kill(victim, 100us); });
      };
      run_until([&] { return struck; });
      expect_same_bits();
      if (HasFailure()) return;
    }
  }
}

// H-18: the first collector dies with the promises it has; the second one starts from the same plan
// and finds the gradients still there.
TEST_F(elastic_holes, a_collector_that_dies_leaves_what_the_next_one_needs) {
  for (auto pause = 0us; pause <= 1000us; pause += 100us) {
    SCOPED_TRACE(pause / 1us);
    start();
    bool first = false, second = false;
    points->seen = [&](member_id, std::uint64_t step) {
      if (first || step != 6) return;
      first = true;
      soon(pause, [&] { w->kill(0, 1ms); });
    };
    points->promise = [&](member_id who, generation) {
      if (second || !first || who != member_id(1)) return;
      second = true;
      soon(pause / 2, [&] { w->kill(1, 1ms); });
    };
    run_until([&] { return second; });
    expect_same_bits();
    EXPECT_EQ(w->store().plans.back().members.size(), 2u);
    if (HasFailure()) return;
  }
}

// H-20: between the loss and the copies' plan a second member is lost, which two backups bear.
TEST_F(elastic_holes, a_second_loss_while_copies_are_made_is_borne) {
  for (const std::uint32_t victim : {0u, 1u, 2u}) {
    SCOPED_TRACE(victim);
    start();
    run_until_step(5);
    bool struck = false;
    points->copied = [&](member_id, block_id, std::uint64_t) {
      if (std::exchange(struck, true)) return;
      soon(0us, [&] { w->kill(victim, 1ms); });
    };
    w->kill(3, 3ms);
    run_until([&] { return struck; });
    expect_same_bits();
    if (HasFailure()) return;
  }
}

// H-29: its copies counted for nothing yet.
TEST_F(elastic_holes, a_joiner_that_dies_in_its_first_copy_takes_nothing_with_it) {
  s.backups = 1;
  start();
  run_until_step(5);
  bool struck = false;
  points->copied = [&](member_id who, block_id, std::uint64_t) {
    if (who != member_id(4) || std::exchange(struck, true)) return;
    soon(0us, [&] { w->kill(4, 1ms); });
  };
  w->add_member();
  run_until([&] { return struck; });
  expect_same_bits();
  EXPECT_THAT(members_of_plan(w->store().plans.size() - 1), ElementsAre(0, 1, 2, 3));
}

// H-30: one direction of one line is dead. Somebody has to leave, once, and no plans without end
// follow.
TEST_F(elastic_holes, a_line_that_is_dead_in_one_direction_costs_few_plans) {
  start();
  run_until_step(5);
  w->network().cut(w->process(0), w->process(1));
  run_for(150ms);
  EXPECT_LE(w->store().plans.size(), 5u);
  w->network().heal(w->process(0), w->process(1));
  if (!w->somebody_finished()) start_again_who_ended();
  expect_same_bits();
}

// H-31: the rest holds every block and goes on under the chain, however few they are.
TEST_F(elastic_holes, a_minority_that_holds_every_block_goes_on) {
  s.members = 5;
  s.backups = 3;
  start();
  run_until_step(5);
  for (const std::size_t i : {0u, 2u, 4u}) w->kill(i, 3ms);
  expect_same_bits();
  EXPECT_THAT(members_of_plan(w->store().plans.size() - 1), ElementsAre(1, 3));
}

// H-32: nobody is told of the death; silence says it.
TEST_F(elastic_holes, a_member_that_dies_without_a_sound_is_missed) {
  for (const std::size_t victim : {0u, 2u}) {
    start();
    run_until_step(5);
    w->kill(victim, std::nullopt);
    expect_same_bits();
    EXPECT_EQ(w->store().plans.back().members.size(), 3u);
  }
}

// Nobody has heard of the plan that gave it the copies, but it stands in the chain, and the chain
// is read before a block counts as out of reach.
TEST_F(elastic_holes, a_plan_whose_publisher_died_before_telling_anybody_is_found) {
  s.members = 2;
  s.backups = 1;
  start();
  run_until_step(5);
  w->kill(1, 3ms);
  run_until([&] { return w->store().plans.size() >= 2; });
  w->revive(1);
  run_until([&] { return w->store().plans.back().members.size() == 2; });
  EXPECT_THAT(w->store().plans.back().placement.front().backups, IsEmpty());
  // It answers the question for the plan with its copies and hears no more from then on.
  w->store().answer_time = 3ms;
  bool answered = false;
  points->promise = [&](member_id who, generation) {
    if (who != member_id(1) || std::exchange(answered, true)) return;
    soon(2ms, [&] { cut(0, 1); });
  };
  run_until([&] { return answered && !w->store().plans.back().placement.front().backups.empty(); });
  const std::size_t published = w->store().plans.size();
  w->kill(0, 1ms);
  expect_same_bits();
  EXPECT_THAT(members_of_plan(published), ElementsAre(1));
}

// It has answered, so it is listed, and its link breaks before it is told.
TEST_F(elastic_holes, a_newcomer_whose_link_breaks_while_its_plan_is_published_hears_of_it) {
  for (auto pause = 0us; pause <= 2000us; pause += 100us) {
    SCOPED_TRACE(pause / 1us);
    start();
    run_until_step(5);
    const std::size_t newcomer = w->add_member();
    bool struck = false;
    points->promise = [&](member_id who, generation) {
      if (who != member_id(0) || std::exchange(struck, true)) return;
      soon(pause, [&] { w->network().reset_links(w->process(0), w->process(newcomer)); });
    };
    run_until([&] { return struck; });
    expect_same_bits();
    if (HasFailure()) return;
  }
}

// H-25: the run directory is needed for changes alone.
TEST_F(elastic_holes, steps_go_on_while_the_run_directory_does_not_answer) {
  start();
  run_until_step(5);
  w->store().answer_time = 20s;
  const time_since_start before = w->now();
  run_until_step(25);
  EXPECT_LT(w->now() - before, 1s);
  w->store().answer_time = 200us;
  expect_same_bits();
}

// H-28: the lines of a coordinator that died are written by the next one, where they are missing.
TEST_F(elastic_holes, every_step_has_its_line_whenever_its_coordinator_dies) {
  for (auto pause = 0us; pause <= 1500us; pause += 100us) {
    SCOPED_TRACE(pause / 1us);
    start();
    bool struck = false;
    points->seen = [&](member_id who, std::uint64_t step) {
      if (step != 6 || who != member_id(0) || std::exchange(struck, true)) return;
      soon(pause, [&] { w->kill(0, 2ms); });
    };
    run_until([&] { return struck; });
    expect_same_bits();
    if (HasFailure()) return;
  }
}

// H-09: frames are lost, late and twice while members change.
TEST_F(elastic_holes, a_bad_network_during_a_change_of_plans_changes_no_bit) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    s.seed = seed;
    s.network.lose = 0.01;
    s.network.repeat = 0.05;
    s.network.reorder = 0.05;
    s.network.jitter = 1ms;
    start();
    run_until_step(5);
    w->kill(seed % 4, 3ms);
    run_until_step(12);
    w->revive(seed % 4);
    expect_same_bits();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace troupe::actors::sim
