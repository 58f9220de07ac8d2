// Whole worlds in the interleavings that a careless version of the protocol gets wrong: a fault
// strikes at a point of the protocol, not at a moment of the clock, and the invariants watch.
// tests/actors/protocol/collection_traces_test.cpp has what one collection alone shows of them.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/actors/sim/traced_world.hpp"

namespace troupe::actors::sim {
namespace {

using testing::AnyOf;
using testing::ElementsAre;

struct elastic_traces : traced_world {};

// --- traces ---

// T1, H-01, H-02, H-03: each half holds every block and publishes a plan of that number. The chain
// lets one win, and who is not in it ends.
TEST_F(elastic_traces, trace_1_of_two_halves_that_could_both_go_on_one_does) {
  start();
  run_until_step(5);
  cut_between({0, 2}, {1, 3});
  const auto ended = [&] {
    return std::ranges::count_if(std::vector<std::size_t>{0, 1, 2, 3}, [&](std::size_t i) {
      const auto& how = w->ended(i);
      return how && how->code == exit_code::too_few;
    });
  };
  run_until([&] { return ended() == 2; });
  EXPECT_THAT(members_of_plan(1), AnyOf(ElementsAre(0, 2), ElementsAre(1, 3)));
  cut_between({0, 2}, {1, 3}, false);
  start_again_who_ended();
  expect_same_bits();
  EXPECT_EQ(w->store().plans.back().members.size(), 4u);
}

// T2, H-08, H-12: the coordinator decides and only m2 hears of it, applies, and sends its
// parameters; then both are gone, at every moment from there on. Whoever has the parameters has
// seen the record, also if the other one who is left has not.
TEST_F(elastic_traces, trace_2_parameters_of_a_decided_step_never_mix_with_those_before) {
  for (auto pause = 0us; pause <= 1200us; pause += 40us) {
    SCOPED_TRACE(pause / 1us);
    start();
    bool struck = false;
    points->seen = [&](member_id who, std::uint64_t step) {
      if (step != 6) return;
      if (who == member_id(0)) {
        soon(0us, [&] {
          cut_between({0}, {1, 3});
          cut(2, 3);  // so that m1 alone hears of it from m2
        });
      }
      if (who != member_id(2) || std::exchange(struck, true)) return;
      soon(pause, [&] {
        w->kill(0, 3ms);
        w->kill(2, 4ms);
      });
    };
    run_until([&] { return struck; });
    expect_same_bits();
    if (HasFailure()) return;
  }
}

// T3, H-07, H-18: m1 dies and m3 stands still until there is a plan without it, which commits
// steps. When it goes on, in plan 0, it leads nobody and feeds nothing.
TEST_F(elastic_traces, trace_3_who_missed_a_plan_does_not_bring_its_old_blocks_into_a_later_one) {
  start();
  run_until_step(5);
  w->freeze(3);
  w->kill(1, 3ms);
  run_until([&] { return w->store().plans.size() >= 2; });
  EXPECT_THAT(members_of_plan(1), ElementsAre(0, 2));
  run_until_step(8);
  w->thaw(3);
  run_until([&] { return w->ended(3).has_value(); });
  EXPECT_EQ(w->ended(3)->code, exit_code::too_few) << w->ended(3)->why;
  for (const protocol::plan& p : w->store().plans) EXPECT_NE(p.coordinator, member_id(3));
  start_again_who_ended();
  expect_same_bits();
}

// T4, H-19, H-31, L-6: neither half holds every block. Nobody goes back to a checkpoint, nothing is
// published, and the world goes on by itself when it is whole again.
TEST_F(elastic_traces, trace_4_halves_that_miss_blocks_wait_for_each_other) {
  s.backups = 1;
  start();
  run_until_step(5);
  const protocol::plan& plan = w->store().plans.front();
  const auto covers = [&](std::size_t a, std::size_t b) {
    return std::ranges::all_of(plan.placement, [&](const protocol::placed_blocks& part) {
      const auto in = [&](member_id id) { return id.value == a || id.value == b; };
      return in(part.primary) || std::ranges::any_of(part.backups, in);
    });
  };
  std::optional<std::vector<std::size_t>> left, right;
  for (const std::size_t with : {1u, 2u, 3u}) {
    std::vector<std::size_t> rest;
    for (const std::size_t i : {1u, 2u, 3u}) {
      if (i != with) rest.push_back(i);
    }
    if (covers(0, with) || covers(rest[0], rest[1])) continue;
    left = {0, with};
    right = rest;
  }
  ASSERT_TRUE(left) << "this placement has no such halves";
  cut_between(*left, *right);
  run_for(5s);
  EXPECT_EQ(w->store().plans.size(), 1u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FALSE(w->ended(i)) << i << ": " << w->ended(i)->why;
  cut_between(*left, *right, false);
  expect_same_bits();
}

// T5, H-04, S-6: m3 does not hear the coordinator and collects the others, while the coordinator
// decides and announces. What was announced is never behind a later plan.
TEST_F(elastic_traces, trace_5_a_step_that_was_announced_is_not_done_again) {
  for (auto pause = 0us; pause <= 3000us; pause += 300us) {
    SCOPED_TRACE(pause / 1us);
    start();
    bool struck = false;
    points->announced = [&](member_id, std::uint64_t step) {
      if (std::exchange(struck, struck || step == 5) || step != 5) return;
      soon(pause, [&] { cut(0, 3); });
    };
    run_until([&] { return w->store().plans.size() >= 2 || w->over(); });
    cut(0, 3, false);
    run_for(100ms);
    if (!w->somebody_finished()) start_again_who_ended();
    expect_same_bits();
    if (HasFailure()) return;
  }
}

// --- wrong readings ---

// A healthy member that is slow to promise is waited for: expelled, it would join and be expelled
// again, for ever.
TEST_F(elastic_traces, wrong_reading_a_slow_member_is_not_expelled_by_a_change) {
  start();
  run_until_step(5);
  w->freeze(3);
  soon(35ms, [&] { w->thaw(3); });
  w->kill(1, 3ms);
  run_until([&] { return w->store().plans.size() >= 2; });
  EXPECT_THAT(members_of_plan(1), ElementsAre(0, 2, 3));
  expect_same_bits();
}

// A newcomer that never answers holds up one change and not the run, and causes no plans without
// end.
TEST_F(elastic_traces, wrong_reading_a_newcomer_that_stands_still_causes_few_plans) {
  s.steps = 600;
  start();
  run_until_step(5);
  const std::size_t i = w->add_member();
  points->promise = [&](member_id who, generation) {
    if (who == member_id(0)) soon(0us, [&, i] { w->freeze(i); });
  };
  run_for(700ms);
  points->promise = {};
  EXPECT_LE(w->store().plans.size(), 4u) << story();
  w->kill(i, 1ms);
  expect_same_bits();
}

}  // namespace
}  // namespace troupe::actors::sim
