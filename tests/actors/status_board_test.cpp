#include "actors/status_board.hpp"

#include <gtest/gtest.h>

#include "tests/actors/worlds_to_see.hpp"

namespace troupe::actors {
namespace {

using std::chrono::seconds;

protocol::decision_record decided(std::uint64_t step, bool skip = false) {
  protocol::decision_record d;
  d.step = step;
  d.loss = 2.5;
  d.tokens = 64;
  d.skip = skip;
  return d;
}

TEST(status_board, a_new_life_in_a_slot_is_a_restart_also_after_plans_without_it) {
  manual_clock clock(noon);
  status_board board(clock);
  const auto plan = [&](std::uint64_t number, const std::vector<std::uint64_t>& lives) {
    std::vector<member_status> members;
    for (std::size_t i = 0; i < lives.size(); ++i) {
      member_status m;
      m.id = static_cast<std::uint32_t>(i);
      m.name = "worker-" + std::to_string(i);
      m.life = incarnation(lives[i]);
      members.push_back(m);
    }
    board.plan(number, "a plan", members);
  };
  plan(0, {10, 20});
  board.member(member_id{1})->step = 5;
  plan(1, {10});
  plan(2, {10, 21});
  EXPECT_EQ(board.member(member_id{0})->restarts, 0U);
  EXPECT_EQ(board.member(member_id{1})->restarts, 1U);
  EXPECT_EQ(board.member(member_id{1})->step, 0U) << "of its former life";
  plan(3, {10, 21});
  EXPECT_EQ(board.member(member_id{1})->restarts, 1U);
}

TEST(status_board, a_member_that_stays_keeps_what_it_told_and_gets_its_new_share) {
  manual_clock clock(noon);
  status_board board(clock);
  std::vector<member_status> members = world_to_see().members;
  board.plan(0, "a plan", members);
  board.member(member_id{0})->memory_bytes[memory_kind::activations] = 77;
  board.member(member_id{0})->step = 9;
  members[0].memory_bytes[memory_kind::optimizer] = 5000;
  members[0].step = 0;
  clock.advance(seconds(3));
  board.plan(1, "another plan", members);
  const member_status& m = *board.member(member_id{0});
  EXPECT_EQ(m.step, 9U);
  EXPECT_EQ(m.since, noon);
  EXPECT_EQ(m.memory_bytes[memory_kind::activations], 77U);
  EXPECT_EQ(m.memory_bytes[memory_kind::optimizer], 5000U);
}

TEST(status_board, a_committed_step_is_seen_and_counted) {
  manual_clock clock(noon);
  status_board board(clock);
  EXPECT_EQ(board.now().state, run_state::starting);
  clock.advance(seconds(5));
  board.committed(decided(7), 0.5, false);
  board.committed(decided(8, true), 0.5, true);
  const world_status& s = board.now();
  EXPECT_EQ(s.state, run_state::training);
  EXPECT_EQ(s.since, noon + seconds(5));
  EXPECT_EQ(s.step, 8U);
  EXPECT_EQ(s.loss, 2.5);
  EXPECT_EQ(s.last_commit, noon + seconds(5));
  EXPECT_EQ(s.counters.steps, 2U);
  EXPECT_EQ(s.counters.tokens, 128U);
  EXPECT_EQ(s.counters.skipped_steps, 1U);
  EXPECT_EQ(s.counters.redone_steps, 1U);
  EXPECT_EQ(s.counters.step_seconds.count(), 2U);
}

TEST(status_board, the_time_of_a_state_counts_from_when_it_was_entered) {
  manual_clock clock(noon);
  status_board board(clock);
  board.enter(run_state::waiting, "one more member");
  clock.advance(seconds(5));
  board.enter(run_state::waiting, "two more members");
  EXPECT_EQ(board.now().since, noon);
  EXPECT_EQ(board.now().note, "two more members");
}

TEST(status_board, a_snapshot_is_not_changed_by_what_comes_later) {
  manual_clock clock(noon);
  status_board board(clock);
  std::shared_ptr<const world_status> seen;
  board.publish_to([&](std::shared_ptr<const world_status> s) { seen = std::move(s); });
  board.committed(decided(1), 1, false);
  board.publish();
  const auto first = seen;
  board.committed(decided(2), 1, false);
  board.publish();
  EXPECT_EQ(first->step, 1U);
  EXPECT_EQ(seen->step, 2U);
}

TEST(status_board, a_new_plan_keeps_what_is_known_of_members_that_stay) {
  manual_clock clock(noon);
  status_board board(clock);
  member_status a, b;
  a.id = 0;
  a.name = "worker-0";
  b.id = 1;
  b.name = "worker-1";
  board.plan(1, "two", {b, a});
  board.member(member_id{0})->step = 9;
  board.member_is(member_id{1}, member_state::lost);
  clock.advance(seconds(5));
  b.state = member_state::active;
  b.restarts = 1;
  board.plan(2, "two again", {a, b});
  ASSERT_EQ(board.now().members.size(), 2U);
  EXPECT_EQ(board.now().members[0].step, 9U);
  EXPECT_EQ(board.now().members[0].since, noon);
  EXPECT_EQ(board.now().members[1].state, member_state::active);
  EXPECT_EQ(board.now().members[1].since, noon + seconds(5));
  EXPECT_EQ(board.now().members[1].restarts, 1U);
  EXPECT_EQ(board.now().generation, 2U);
  EXPECT_EQ(board.member(member_id{2}), nullptr);
}

TEST(status_board, what_members_sent_never_goes_down_whoever_is_lost) {
  manual_clock clock(noon);
  status_board board(clock);
  const auto bulk = [&] { return board.now().counters.sent_bytes[lane::bulk]; };
  board.sent(member_id{0}, incarnation{1}, lane::bulk, 100);
  board.sent(member_id{1}, incarnation{1}, lane::bulk, 10);
  board.sent(member_id{0}, incarnation{1}, lane::bulk, 150);
  EXPECT_EQ(bulk(), 160U);
  board.sent(member_id{0}, incarnation{1}, lane::bulk, 120);  // an old heartbeat
  EXPECT_EQ(bulk(), 160U);
  board.sent(member_id{0}, incarnation{2}, lane::bulk, 30);  // its successor counts from 0
  EXPECT_EQ(bulk(), 190U);
  board.sent(member_id{0}, incarnation{1}, lane::bulk, 999);
  EXPECT_EQ(bulk(), 190U);
  board.sent(member_id{0}, incarnation{2}, lane::control, 5);
  EXPECT_EQ(board.now().counters.sent_bytes[lane::control], 5U);
}

TEST(status_board, checkpoints_are_counted_when_begun_and_seen_when_published) {
  manual_clock clock(noon);
  status_board board(clock);
  board.checkpoint_begun();
  board.checkpoint_failed();
  EXPECT_FALSE(board.now().checkpoint);
  board.checkpoint_begun();
  board.checkpoint_published(12, 4096, 0.5);
  EXPECT_EQ(board.now().checkpoint->step, 12U);
  EXPECT_EQ(board.now().counters.checkpoint_attempts, 2U);
  EXPECT_EQ(board.now().counters.checkpoint_failures, 1U);
  EXPECT_EQ(board.now().counters.checkpoint_seconds[checkpoint_part::write].count(), 1U);
}

TEST(status_board, an_unknown_utilization_is_unknown) {
  manual_clock clock(noon);
  status_board board(clock);
  board.speed(10, 0.5, -1);
  EXPECT_FALSE(board.now().utilization);
  board.speed(10, 0.5, 0.25);
  EXPECT_EQ(board.now().utilization, 0.25);
}

}  // namespace
}  // namespace troupe::actors
