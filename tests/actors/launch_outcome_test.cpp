// Which worker was the first cause, who is told what and when, and how the run ends.
#include "actors/launch_outcome.hpp"

#include <gmock/gmock.h>
#include <signal.h>

namespace troupe::actors {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using order = launch_outcome::order;

launch_outcome world_of(std::size_t workers) {
  std::vector<launched_worker> all;
  for (std::size_t i = 0; i < workers; ++i) {
    all.push_back({"worker-" + std::to_string(i), static_cast<int>(100 + i),
                   "logs/worker-" + std::to_string(i) + ".log"});
  }
  return {all, "gpu03", {.to_notice = seconds(2), .to_leave = seconds(5)}};
}
worker_end exited(int code) { return {.by_signal = false, .number = code}; }
worker_end killed(int signal) { return {.by_signal = true, .number = signal}; }

TEST(launch_outcome, all_done_is_done_and_nothing_is_said) {
  launch_outcome o = world_of(3);
  for (const std::size_t i : {2U, 0U, 1U}) {
    EXPECT_FALSE(o.over());
    o.ended(i, exited(0), seconds(1));
    EXPECT_EQ(o.next_due(), std::nullopt);
  }
  EXPECT_TRUE(o.over());
  EXPECT_EQ(o.code(), 0);
  EXPECT_EQ(o.last_words(), "");
}

TEST(launch_outcome, interrupted_workers_make_an_interrupted_run_without_a_deadline) {
  launch_outcome o = world_of(2);
  EXPECT_THAT(o.notice(SIGUSR1), ElementsAre(order{0, SIGTERM}, order{1, SIGTERM}));
  o.ended(0, exited(75), seconds(1));
  EXPECT_EQ(o.next_due(), std::nullopt);
  EXPECT_THAT(o.due(seconds(1000)), IsEmpty());
  o.ended(1, exited(75), seconds(1000));
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

TEST(launch_outcome, those_who_do_not_notice_are_told_and_then_killed) {
  launch_outcome o = world_of(3);
  o.ended(0, exited(70), seconds(100));
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
  EXPECT_EQ(o.code(), 70);
  EXPECT_THAT(o.last_words(), HasSubstr("within 2 s and were told to: worker-1, worker-2"));
  EXPECT_THAT(o.last_words(), Not(HasSubstr("stopped because of it")));
}

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
