// Whose process is started again and when, who is told what, which worker was the first cause, and
// how the run ends.
#include "actors/launch_outcome.hpp"

#include <gmock/gmock.h>
#include <signal.h>

#include <bit>

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using order = launch_outcome::order;
using enum standing;

launch_outcome world_of(std::size_t workers, const restart_rule& restarts = {}) {
  std::vector<launched_worker> all;
  for (std::size_t i = 0; i < workers; ++i) {
    all.push_back({"worker-" + std::to_string(i), static_cast<int>(100 + i),
                   "logs/worker-" + std::to_string(i) + ".log"});
  }
  return {all,
          "gpu03",
          {.to_notice = seconds(2), .to_finish = seconds(20), .to_leave = seconds(5)},
          restarts};
}
restart_rule at_most(int limit) {
  return {.limit = limit,
          .window = seconds(600),
          .first_pause = milliseconds(200),
          .longest_pause = seconds(30)};
}
worker_end exited(int code) { return {.by_signal = false, .number = code}; }
worker_end killed(int signal) { return {.by_signal = true, .number = signal}; }

TEST(launch_outcome, all_done_is_done_and_nothing_is_said) {
  launch_outcome o = world_of(3);
  for (const std::size_t i : {2U, 0U, 1U}) {
    EXPECT_FALSE(o.over());
    o.ended(i, exited(0), seconds(1));
    EXPECT_THAT(o.due(seconds(1)), IsEmpty());
    EXPECT_THAT(o.restarts_due(seconds(1000)), IsEmpty());
  }
  EXPECT_TRUE(o.over());
  EXPECT_EQ(o.next_due(), std::nullopt);
  EXPECT_EQ(o.code(), 0);
  EXPECT_EQ(o.last_words(), "");
}

TEST(launch_outcome, interrupted_workers_save_as_long_as_they_like_and_make_an_interrupted_run) {
  launch_outcome o = world_of(2);
  EXPECT_THAT(o.notice(SIGUSR1), ElementsAre(order{0, SIGTERM}, order{1, SIGTERM}));
  EXPECT_EQ(o.next_due(), std::nullopt);
  EXPECT_THAT(o.due(seconds(1000)), IsEmpty());
  o.ended(0, exited(75), seconds(1000));
  EXPECT_EQ(o.next_due(), seconds(1020));
  o.ended(1, exited(75), seconds(1001));
  EXPECT_EQ(o.code(), 75);
  EXPECT_EQ(o.last_words(), "");
}

TEST(launch_outcome, a_worker_that_had_finished_before_the_notice_leaves_the_run_resumable) {
  launch_outcome o = world_of(2);
  o.ended(0, exited(0), seconds(1));
  o.ended(1, exited(75), seconds(1));
  EXPECT_EQ(o.code(), 75);
}

TEST(launch_outcome, a_killed_worker_is_named_with_host_and_how_it_was_noticed) {
  launch_outcome o = world_of(3);
  o.ended(1, killed(SIGKILL), seconds(10));
  o.ended(0, exited(69), seconds(10));
  o.ended(2, exited(69), seconds(11));
  EXPECT_EQ(o.code(), 69);
  const std::string words = o.last_words();
  EXPECT_THAT(words, HasSubstr("worker-1 on gpu03 (process 101) was killed by signal 9"));
  EXPECT_THAT(words, HasSubstr("launcher saw"));
  EXPECT_THAT(words, HasSubstr("logs/worker-1.log"));
  EXPECT_THAT(words, HasSubstr("stopped because of it: worker-0, worker-2"));
  EXPECT_THAT(words, HasSubstr("resumes"));
}

TEST(launch_outcome, the_first_cause_is_not_the_victim_that_was_seen_first) {
  for (const worker_end cause : {killed(SIGSEGV), exited(65)}) {
    launch_outcome o = world_of(2);
    o.ended(0, exited(69), seconds(1));
    o.ended(1, cause, seconds(1));
    EXPECT_EQ(o.code(), cause.by_signal ? 69 : 65);
    EXPECT_THAT(o.last_words(), HasSubstr("worker-1 on gpu03"));
  }
}

TEST(launch_outcome, of_two_causes_the_first_one_counts) {
  launch_outcome o = world_of(2);
  o.ended(1, exited(74), seconds(1));
  o.ended(0, killed(SIGBUS), seconds(1));
  EXPECT_EQ(o.code(), 74);
  EXPECT_THAT(o.last_words(), HasSubstr("worker-1 on gpu03 (process 101) ended with exit code 74"));
}

TEST(launch_outcome, too_few_members_is_a_cause_where_there_is_no_other) {
  launch_outcome o = world_of(2);
  o.ended(0, exited(69), seconds(1));
  o.ended(1, exited(69), seconds(1));
  EXPECT_EQ(o.code(), 69);
}

TEST(launch_outcome, those_who_do_not_notice_a_lasting_trouble_are_told_and_then_killed) {
  for (const int code : {64, 65, 73, 78}) {
    launch_outcome o = world_of(3);
    o.ended(0, exited(code), seconds(100));
    EXPECT_THAT(o.restarts_due(seconds(1000)), IsEmpty());
    EXPECT_EQ(o.next_due(), seconds(102));
    EXPECT_THAT(o.due(seconds(101)), IsEmpty());
    EXPECT_THAT(o.due(seconds(102)), ElementsAre(order{1, SIGTERM}, order{2, SIGTERM}));
    EXPECT_THAT(o.due(seconds(103)), IsEmpty());
    EXPECT_EQ(o.next_due(), seconds(107));
    o.ended(1, exited(75), seconds(103));
    EXPECT_THAT(o.due(seconds(107)), ElementsAre(order{2, SIGKILL}));
    EXPECT_EQ(o.next_due(), std::nullopt);
    EXPECT_THAT(o.due(seconds(200)), IsEmpty());
    o.ended(2, killed(SIGKILL), seconds(200));
    EXPECT_EQ(o.code(), code);
    EXPECT_THAT(o.last_words(), HasSubstr("within 2 s and were told to: worker-1, worker-2"));
    EXPECT_THAT(o.last_words(), Not(HasSubstr("stopped because of it")));
    EXPECT_THAT(o.take_news(), IsEmpty());
  }
}

TEST(launch_outcome, whoever_stays_long_after_another_has_finished_is_told_and_then_killed) {
  launch_outcome o = world_of(2);
  o.ended(0, exited(0), seconds(100));
  EXPECT_THAT(o.due(seconds(119)), IsEmpty());
  EXPECT_THAT(o.due(seconds(120)), ElementsAre(order{1, SIGTERM}));
  EXPECT_THAT(o.due(seconds(125)), ElementsAre(order{1, SIGKILL}));
  o.ended(1, killed(SIGKILL), seconds(125));
  EXPECT_EQ(o.code(), 0);
  EXPECT_THAT(o.last_words(), HasSubstr("within 20 s and were told to: worker-1"));
}

// --- a world that goes on ---

TEST(launch_outcome, a_lost_worker_is_started_again_at_once_and_the_others_are_left_alone) {
  for (const worker_end lost :
       {killed(SIGKILL), killed(SIGSEGV), killed(SIGTERM), exited(70), exited(74)}) {
    launch_outcome o = world_of(3);
    o.ended(2, lost, seconds(10));
    EXPECT_EQ(o.next_due(), seconds(10));
    EXPECT_THAT(o.due(seconds(1000)), IsEmpty());
    EXPECT_THAT(o.restarts_due(seconds(10)), ElementsAre(2));
    EXPECT_THAT(o.take_news(), IsEmpty());
    o.restarted(2, 456);
    EXPECT_THAT(o.restarts_due(seconds(1000)), IsEmpty());
    EXPECT_EQ(o.next_due(), std::nullopt);
    EXPECT_FALSE(o.over());
    for (const std::size_t i : {0U, 1U, 2U}) o.ended(i, exited(0), seconds(20));
    EXPECT_TRUE(o.over());
    EXPECT_EQ(o.code(), 0);
    EXPECT_EQ(o.last_words(), "");
  }
}

TEST(launch_outcome, a_restart_is_told_with_both_processes_the_cause_and_the_budget) {
  launch_outcome o = world_of(3);
  o.ended(2, killed(SIGKILL), seconds(10));
  o.restarted(2, 456);
  EXPECT_THAT(o.take_news(),
              ElementsAre("worker-2 (process 102) ended by SIGKILL; started again as process 456 "
                          "(restart 1 of 10 within 600 s)"));
  o.ended(2, exited(70), seconds(11));
  EXPECT_THAT(o.restarts_due(seconds(11)), IsEmpty());
  EXPECT_THAT(o.restarts_due(seconds(11) + milliseconds(200)), ElementsAre(2));
  o.restarted(2, 457);
  EXPECT_THAT(
      o.take_news(),
      ElementsAre("worker-2 (process 456) ended with exit code 70; started again as process "
                  "457 (restart 2 of 10 within 600 s)"));
}

TEST(launch_outcome, the_pause_doubles_in_each_slot_by_itself_and_a_long_one_is_told) {
  launch_outcome o = world_of(3);
  for (const int pause : {0, 200, 400, 800, 1600}) {
    o.ended(1, killed(SIGABRT), seconds(10));
    EXPECT_EQ(o.next_due(), seconds(10) + milliseconds(pause));
    if (pause == 1600) {
      EXPECT_THAT(o.take_news(),
                  ElementsAre("worker-1 (process 204) ended by SIGABRT; it is started "
                              "again in 1.6 s"));
    }
    o.restarted(1, 201 + static_cast<int>(std::bit_width(static_cast<unsigned>(pause / 200))));
    o.take_news();
  }
  o.ended(2, killed(SIGABRT), seconds(10));
  EXPECT_EQ(o.next_due(), seconds(10));
}

TEST(launch_outcome, a_slot_whose_budget_is_spent_stays_empty_and_the_world_finishes_without_it) {
  launch_outcome o = world_of(2, at_most(1));
  o.ended(1, killed(SIGKILL), seconds(10));
  o.restarted(1, 456);
  o.take_news();
  o.ended(1, killed(SIGKILL), seconds(11));
  EXPECT_THAT(
      o.take_news(),
      ElementsAre(AllOf(HasSubstr("worker-1 (process 456) ended by SIGKILL; it is not started"),
                        HasSubstr("restart 1 of 1 within 600 s"),
                        HasSubstr("fault_tolerance.max_restarts"))));
  EXPECT_EQ(o.next_due(), std::nullopt);
  EXPECT_FALSE(o.over());
  o.ended(0, exited(0), seconds(5000));
  EXPECT_TRUE(o.over());
  EXPECT_EQ(o.code(), 0);
  EXPECT_EQ(o.last_words(), "");
}

TEST(launch_outcome, without_any_restart_the_world_still_goes_on_without_the_lost_one) {
  launch_outcome o = world_of(2, at_most(0));
  o.ended(0, killed(SIGKILL), seconds(10));
  EXPECT_THAT(o.take_news(), ElementsAre(HasSubstr("no restart is allowed")));
  EXPECT_EQ(o.next_due(), std::nullopt);
  o.ended(1, exited(75), seconds(20));
  EXPECT_EQ(o.code(), 75);
}

TEST(launch_outcome,
     whoever_ended_with_69_is_started_again_after_a_pause_in_which_others_may_follow) {
  launch_outcome o = world_of(3);
  o.ended(0, exited(69), seconds(1));
  EXPECT_EQ(o.next_due(), seconds(1) + milliseconds(200));
  o.ended(1, exited(69), seconds(1));
  o.ended(2, exited(69), seconds(1));
  EXPECT_TRUE(o.over());
  EXPECT_THAT(o.take_news(), IsEmpty());
  EXPECT_EQ(o.code(), 69);
}

TEST(launch_outcome, nobody_is_started_again_once_the_run_is_ending) {
  for (const int how : {0, 1, 2, 3, 4}) {
    launch_outcome o = world_of(3);
    o.ended(2, exited(69), seconds(1));  // waits for its restart
    if (how == 0) o.ended(0, exited(0), seconds(1));
    if (how == 1) o.ended(0, exited(75), seconds(1));
    if (how == 2) o.ended(0, exited(65), seconds(1));
    if (how == 3) o.notice(SIGTERM);
    if (how == 4) o.notice(SIGINT);
    EXPECT_THAT(o.restarts_due(seconds(1000)), IsEmpty()) << how;
    o.ended(1, killed(SIGKILL), seconds(2));
    EXPECT_THAT(o.restarts_due(seconds(1000)), IsEmpty()) << how;
  }
}

TEST(launch_outcome, a_restart_that_fails_is_told_and_tried_again_on_the_same_budget) {
  launch_outcome o = world_of(2, at_most(2));
  o.ended(1, killed(SIGKILL), seconds(10));
  o.not_restarted(1, "Resource temporarily unavailable", seconds(10));
  EXPECT_THAT(o.take_news(),
              ElementsAre("worker-1 could not be started again: Resource temporarily unavailable"));
  EXPECT_THAT(o.restarts_due(seconds(10) + milliseconds(200)), ElementsAre(1));
  o.not_restarted(1, "Resource temporarily unavailable", seconds(11));
  EXPECT_THAT(o.restarts_due(seconds(1000)), IsEmpty());
  EXPECT_THAT(o.take_news(), Contains(HasSubstr("restart 2 of 2 within 600 s, no more")));
}

TEST(launch_outcome, a_death_while_the_others_save_and_leave_ends_nothing_and_is_told) {
  launch_outcome o = world_of(3);
  o.notice(SIGTERM);
  o.ended(1, killed(SIGSEGV), seconds(1));
  EXPECT_EQ(o.next_due(), std::nullopt);
  o.ended(0, exited(75), seconds(50));
  o.ended(2, exited(75), seconds(50));
  EXPECT_EQ(o.code(), 75);
  EXPECT_EQ(o.last_words(),
            "worker-1 on gpu03 (process 101) ended by SIGSEGV while the run was ending; the others "
            "finished without it");
}

// --- who is in the world ---

TEST(launch_outcome, of_those_who_all_die_nobody_waits_for_a_world_that_is_gone) {
  launch_outcome o = world_of(2);
  o.in_world({in, in});
  o.ended(0, killed(SIGKILL), seconds(10));
  o.restarted(0, 456);
  o.take_news();
  o.in_world({former, in});  // the newest plan names only lives that are over
  o.ended(1, killed(SIGKILL), seconds(10) + milliseconds(3));
  EXPECT_THAT(o.restarts_due(seconds(1000)), IsEmpty());
  EXPECT_THAT(o.due(seconds(10) + milliseconds(3)), ElementsAre(order{0, SIGTERM}));
  EXPECT_EQ(o.next_due(), seconds(15) + milliseconds(3));
  o.ended(0, exited(75), seconds(11));
  EXPECT_EQ(o.code(), 69);
  EXPECT_THAT(o.last_words(), HasSubstr("worker-0 on gpu03 (process 100) was killed by signal 9"));
  EXPECT_THAT(o.last_words(), HasSubstr("because of it: worker-1"));
  EXPECT_THAT(o.last_words(), Not(HasSubstr("told")));
}

TEST(launch_outcome, a_world_that_ends_of_a_loss_names_the_loss_and_not_the_newcomer) {
  launch_outcome o = world_of(3);
  o.in_world({in, in, in});
  o.ended(1, killed(SIGKILL), seconds(10));
  o.restarted(1, 456);
  o.in_world({in, former, in});
  o.ended(0, exited(69), seconds(10));
  o.ended(2, exited(69), seconds(10));
  EXPECT_THAT(o.due(seconds(10)), ElementsAre(order{1, SIGTERM}));
  o.ended(1, killed(SIGTERM), seconds(10));
  EXPECT_EQ(o.code(), 69);
  EXPECT_THAT(o.last_words(), HasSubstr("worker-1 on gpu03 (process 101) was killed by signal 9"));
  EXPECT_THAT(o.last_words(), HasSubstr("stopped because of it: worker-0, worker-2"));
}

TEST(launch_outcome, a_newcomer_that_is_in_carries_the_world_and_its_former_loss_is_forgotten) {
  launch_outcome o = world_of(2);
  o.in_world({in, in});
  o.ended(0, killed(SIGKILL), seconds(10));
  o.restarted(0, 456);
  o.in_world({in, in});
  o.ended(1, killed(SIGBUS), seconds(20));
  EXPECT_THAT(o.restarts_due(seconds(20)), ElementsAre(1));
  o.restarted(1, 457);
  o.in_world({in, former});
  o.ended(0, exited(74), seconds(30));
  o.ended(1, exited(69), seconds(30));
  EXPECT_EQ(o.code(), 69);
  EXPECT_THAT(o.last_words(), HasSubstr("worker-1 on gpu03 (process 101) was killed by signal 7"));
}

TEST(launch_outcome, a_loss_before_the_world_has_met_ends_the_start_as_nobody_could_go_on) {
  launch_outcome o = world_of(3);
  o.in_world({out, out, out});
  o.ended(0, killed(SIGKILL), seconds(10));
  EXPECT_THAT(o.restarts_due(seconds(1000)), IsEmpty());
  EXPECT_THAT(o.due(seconds(10)), IsEmpty());
  EXPECT_THAT(o.due(seconds(12)), ElementsAre(order{1, SIGTERM}, order{2, SIGTERM}));
  o.ended(1, exited(75), seconds(12));
  o.ended(2, exited(75), seconds(12));
  EXPECT_EQ(o.code(), 69);
}

TEST(launch_outcome, whoever_left_the_world_in_order_while_it_goes_on_ends_nothing) {
  for (const int code : {0, 75}) {
    launch_outcome o = world_of(3);
    o.in_world({in, out, in});  // the newest plan is one without it
    o.ended(1, exited(code), seconds(10));
    EXPECT_EQ(o.next_due(), std::nullopt);
    o.in_world({in, out, in});
    o.ended(2, killed(SIGKILL), seconds(20));
    EXPECT_THAT(o.restarts_due(seconds(20)), ElementsAre(2));
    o.restarted(2, 456);
    o.in_world({in, out, in});
    o.ended(0, exited(0), seconds(30));
    o.ended(2, exited(0), seconds(30));
    EXPECT_EQ(o.code(), 0);
  }
}

TEST(launch_outcome, a_newcomer_that_is_refused_ends_nothing_and_is_not_sent_again) {
  for (const int code : {64, 65, 73, 78}) {
    launch_outcome o = world_of(3);
    o.in_world({in, in, in});
    o.ended(2, killed(SIGKILL), seconds(10));
    o.restarted(2, 456);
    o.take_news();
    o.in_world({in, in, former});
    o.ended(2, exited(code), seconds(11));
    EXPECT_EQ(o.next_due(), std::nullopt);
    EXPECT_THAT(o.take_news(),
                ElementsAre(HasSubstr("worker-2 (process 456) ended with exit code " +
                                      std::to_string(code) + "; it is not started again")));
    o.in_world({in, in, former});
    o.ended(0, exited(0), seconds(20));
    o.ended(1, exited(0), seconds(20));
    EXPECT_EQ(o.code(), 0);
    EXPECT_EQ(o.last_words(), "");
  }
}

TEST(launch_outcome, a_loss_is_the_cause_though_its_newcomer_was_refused_before_the_world_ended) {
  launch_outcome o = world_of(3);
  o.in_world({in, in, in});
  o.ended(2, killed(SIGKILL), seconds(10));
  o.restarted(2, 456);
  o.in_world({in, in, former});
  o.ended(2, exited(78), seconds(10));
  o.in_world({in, in, former});
  o.ended(0, exited(69), seconds(10));
  o.in_world({in, in, former});
  o.ended(1, exited(69), seconds(10));
  EXPECT_EQ(o.code(), 69);
  EXPECT_THAT(o.last_words(), HasSubstr("worker-2 on gpu03 (process 102) was killed by signal 9"));
  EXPECT_THAT(o.last_words(), HasSubstr("stopped because of it: worker-0, worker-1"));
}

TEST(launch_outcome, a_loss_that_the_world_went_on_without_is_not_the_cause_of_its_end_later) {
  launch_outcome o = world_of(3, at_most(0));
  o.in_world({in, in, in});
  o.ended(2, killed(SIGKILL), seconds(10));
  o.in_world({in, in, out});
  o.ended(1, exited(74), seconds(5000));
  o.in_world({in, in, out});
  o.ended(0, exited(69), seconds(5000));
  EXPECT_EQ(o.code(), 74);
  EXPECT_THAT(o.last_words(), HasSubstr("worker-1 on gpu03 (process 101) ended with exit code 74"));
  EXPECT_THAT(o.last_words(), Not(HasSubstr("worker-2")));
}

TEST(launch_outcome, whoever_only_left_does_not_make_the_loss_of_the_rest_an_orderly_end) {
  launch_outcome o = world_of(2);
  o.in_world({in, out});
  o.ended(1, exited(75), seconds(10));
  o.in_world({in, out});
  o.ended(0, killed(SIGKILL), seconds(20));
  EXPECT_EQ(o.code(), 69);
}

// --- notices ---

TEST(launch_outcome, the_same_notice_again_is_the_same_notice) {
  launch_outcome o = world_of(1);
  EXPECT_THAT(o.notice(SIGTERM), ElementsAre(order{0, SIGTERM}));
  EXPECT_THAT(o.notice(SIGTERM), ElementsAre(order{0, SIGTERM}));
  EXPECT_THAT(o.notice(SIGINT), ElementsAre(order{0, SIGTERM}));
}

TEST(launch_outcome, a_second_interrupt_leaves_at_once) {
  launch_outcome o = world_of(2);
  EXPECT_THAT(o.notice(SIGINT), ElementsAre(order{0, SIGTERM}, order{1, SIGTERM}));
  EXPECT_THAT(o.notice(SIGINT), ElementsAre(order{0, SIGKILL}, order{1, SIGKILL}));
  o.ended(0, killed(SIGKILL), seconds(1));
  o.ended(1, killed(SIGKILL), seconds(1));
  EXPECT_EQ(o.code(), 75);
  EXPECT_THAT(o.last_words(), HasSubstr("left at once as asked"));
}

TEST(launch_outcome, a_notice_that_came_before_the_worker_could_take_it_is_no_fault) {
  launch_outcome o = world_of(1);
  o.notice(SIGTERM);
  o.ended(0, killed(SIGTERM), seconds(1));
  EXPECT_EQ(o.code(), 75);
  EXPECT_EQ(o.last_words(), "");
  launch_outcome without = world_of(1);
  without.ended(0, killed(SIGTERM), seconds(1));
  EXPECT_EQ(without.code(), 69);
}

TEST(launch_outcome, a_lone_worker_has_said_its_reason_itself) {
  launch_outcome o = world_of(1);
  o.ended(0, exited(65), seconds(1));
  EXPECT_EQ(o.code(), 65);
  EXPECT_EQ(o.last_words(), "");
}

}  // namespace
}  // namespace troupe::actors
