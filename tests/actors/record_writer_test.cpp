// What stands in the records of a run whose coordinator changes.
#include "actors/record_writer.hpp"

#include <gmock/gmock.h>

#include "actors/plan_text.hpp"
#include "tests/actors/record_keepers.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using record_writer_test = record_keepers_test;

TEST_F(record_writer_test, a_successor_writes_on_and_every_step_stands_once) {
  five_steps();
  process second(*this);
  const time_since_start noticed = clock.now();
  clock.advance(milliseconds(1500));
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5),
                         loss_of("worker-0", noticed, noticed + milliseconds(200), true));
  ASSERT_TRUE(second.commits(4, 5, 0, 3)) << "equal lines are nothing new";
  ASSERT_TRUE(second.commits(6, 8, 1, 2));
  const std::vector<step_record> all = steps();
  ASSERT_EQ(all.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(all[i].step, i + 1);
    EXPECT_EQ(all[i].generation, i < 5 ? 0U : 1U);
    EXPECT_EQ(all[i].world, i < 5 ? 3U : 2U);
  }
  EXPECT_EQ(second.starts, 0) << "a successor is no start";
}

TEST_F(record_writer_test, a_step_whose_coordinator_died_before_its_line_gets_it_from_the_next) {
  five_steps();
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 6, {1, 2}), at(6),
                         loss_of("worker-0", clock.now(), clock.now(), false));
  ASSERT_TRUE(second.commits(5, 6, 0, 3));
  ASSERT_EQ(steps().size(), 6U);
  EXPECT_EQ(steps().back().generation, 0U) << "it is a step of the plan before";
  EXPECT_EQ(steps().back().world, 3U);
  EXPECT_TRUE(events("recovered").empty()) << "no step of the new plan is committed";
  ASSERT_TRUE(second.commits(7, 7, 1, 2));
  EXPECT_EQ(events("recovered").size(), 1U);
}

TEST_F(record_writer_test, a_torn_last_line_is_repaired_by_the_successor) {
  five_steps();
  write_into_steps("{\"step\":6,\"lo");
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 6, {1, 2}), at(6),
                         loss_of("worker-0", clock.now(), clock.now(), false));
  ASSERT_TRUE(second.commits(6, 7, 0, 3));
  EXPECT_EQ(steps().size(), 7U);
}

TEST_F(record_writer_test, a_step_with_other_bits_than_its_line_ends_the_records) {
  five_steps();
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5),
                         loss_of("worker-0", clock.now(), clock.now(), false));
  committed_step other = step_number(5, 0, 3);
  other.record.grad_norm = 0.75;
  const std::optional<status> answered = second.commit(other);
  ASSERT_TRUE(answered && !*answered);
  EXPECT_EQ(answered->failure().code, exit_code::defect);
  EXPECT_THAT(answered->failure().message, AllOf(HasSubstr("step 5"), HasSubstr("grad_norm")));
  const std::optional<status> later = second.commit(step_number(6, 1, 2));
  ASSERT_TRUE(later && !*later) << "the first failure has to stay";
  EXPECT_EQ(steps().size(), 5U);
}

TEST_F(record_writer_test, a_step_that_leaves_a_gap_is_refused) {
  five_steps();
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 7, {1, 2}), at(7),
                         loss_of("worker-0", clock.now(), clock.now(), false));
  const std::optional<status> answered = second.commit(step_number(8, 1, 2));
  ASSERT_TRUE(answered && !*answered);
  EXPECT_THAT(answered->failure().message, HasSubstr("ends with step 5"));
}

TEST_F(record_writer_test, the_events_of_a_recovery_share_its_number_and_its_times) {
  five_steps();
  process second(*this);
  const time_since_start noticed = clock.now();
  clock.advance(milliseconds(1500));
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5),
                         loss_of("worker-0", noticed, noticed + milliseconds(200), true));
  ASSERT_TRUE(second.commits(5, 7, 1, 2));  // half a second each
  const auto lost = events("member_lost"), recovered = events("recovered");
  const auto generations = events("generation");
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0]["member"], "worker-0");
  EXPECT_EQ(lost[0]["cause"], "heartbeat");
  EXPECT_EQ(lost[0]["noticed"], "nothing was heard of it for 1000 ms");
  EXPECT_EQ(lost[0]["recovery"], 1);
  EXPECT_FALSE(lost[0].contains("detect_ms")) << "nobody had heard of it here";
  ASSERT_EQ(generations.size(), 2U);
  EXPECT_EQ(generations[1]["number"], 1);
  EXPECT_EQ(generations[1]["members"], 2);
  EXPECT_EQ(generations[1]["recovery"], 1);
  EXPECT_EQ(generations[1]["reason"], "somebody is gone");
  EXPECT_EQ(generations[1]["plan"], plan_hash(print_plan(plan_number(1, 1, 5, {1, 2}))));
  ASSERT_EQ(recovered.size(), 1U);
  EXPECT_EQ(recovered[0]["recovery"], 1);
  EXPECT_EQ(recovered[0]["from"], 0);
  EXPECT_EQ(recovered[0]["to"], 1);
  EXPECT_EQ(recovered[0]["step"], 6);
  EXPECT_EQ(recovered[0]["step_redone"], true);
  EXPECT_NEAR(recovered[0]["unblock_ms"].get<double>(), 200, 1e-6);
  EXPECT_NEAR(recovered[0]["recover_ms"].get<double>(), 2500, 1e-6);
  const std::string text = shown();
  EXPECT_THAT(text, HasSubstr("lost worker-0: nothing was heard of it for 1000 ms\n"));
  EXPECT_THAT(text, HasSubstr("the run went on without worker-0 in generation 1: step 6"));
}

TEST_F(record_writer_test, a_coordinator_that_stays_tells_a_loss_once_and_how_long_it_was_silent) {
  process only(*this);
  only.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  ASSERT_TRUE(only.commits(1, 2, 0, 3));
  only.writer->heard_of(member_id(2), {.step = 3, .doing = protocol::phase::computing});
  only.settle();
  clock.advance(milliseconds(900));
  only.writer->member_lost(member_id(2), "its link broke");
  only.writer->member_lost(member_id(2), "its link broke again");
  only.settle();
  ASSERT_EQ(events("member_lost").size(), 1U) << "it is told at once";
  only.writer->goes_on(plan_number(1, 0, 2, {0, 1}), at(2),
                       loss_of("worker-2", clock.now(), clock.now(), false));
  ASSERT_TRUE(only.commits(3, 4, 1, 2));
  const auto lost = events("member_lost");
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0]["cause"], "endpoint");
  EXPECT_EQ(lost[0]["recovery"], 1);
  EXPECT_NEAR(lost[0]["detect_ms"].get<double>(), 900, 1e-6);
  EXPECT_EQ(events("recovered").size(), 1U);
  only.writer->member_lost(member_id(1), "its link broke");
  only.settle();
  EXPECT_EQ(events("member_lost").size(), 2U);
  EXPECT_EQ(events("member_lost")[1]["recovery"], 2);
}

TEST_F(record_writer_test, members_that_come_and_leave_are_told_and_are_no_recovery) {
  process only(*this);
  only.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  ASSERT_TRUE(only.commits(1, 2, 0, 3));
  world_change how;
  how.joined = {"worker-3", "worker-4"};
  how.left = {"worker-1"};
  only.writer->goes_on(plan_number(1, 0, 2, {0, 2, 3, 4}), at(2), how);
  ASSERT_TRUE(only.commits(3, 3, 1, 4));
  ASSERT_EQ(events("member_joined").size(), 2U);
  EXPECT_EQ(events("member_joined")[1]["member"], "worker-4");
  ASSERT_EQ(events("member_left").size(), 1U);
  EXPECT_EQ(events("member_left")[0]["member"], "worker-1");
  EXPECT_TRUE(events("recovered").empty());
  EXPECT_FALSE(events("generation")[1].contains("recovery"));
  const world_counters& c = only.end()->board().now().counters;
  EXPECT_EQ(c.generations[change_cause::joined], 1U);
  EXPECT_EQ(c.losses[loss_kind::endpoint], 0U);
}

TEST_F(record_writer_test, the_report_of_a_successor_counts_what_happened_before_it) {
  {
    process first(*this);
    first.writer->started(plan_number(0, 0, 0, {0, 1, 2, 3}), at(0));
    ASSERT_TRUE(first.commits(1, 5, 0, 4));
    first.writer->goes_on(plan_number(1, 0, 5, {0, 1, 2}), at(5),
                          loss_of("worker-3", clock.now(), clock.now(), true));
    ASSERT_TRUE(first.commits(6, 8, 1, 3));
    first.writer->validated(8, 2.25, 100);
    first.settle();
  }
  clock.advance(seconds(1));
  process second(*this);
  second.writer->goes_on(plan_number(2, 1, 8, {1, 2}), at(8),
                         loss_of("worker-0", clock.now(), clock.now(), false));
  ASSERT_TRUE(second.commits(9, 10, 2, 2));
  const std::optional<status> finished = second.finish(10);
  ASSERT_TRUE(finished && *finished);
  const nlohmann::json r = report();
  EXPECT_EQ(r["exit"], 0);
  EXPECT_EQ(r["steps"], 10);
  EXPECT_EQ(r["generations"], 3);
  EXPECT_EQ(r["world_min"], 2);
  EXPECT_EQ(r["world_max"], 4);
  EXPECT_EQ(r["steps_redone"], 1);
  EXPECT_EQ(r["committed_steps_lost"], 0);
  EXPECT_EQ(r["val_loss"], 2.25);
  ASSERT_EQ(r["recoveries"].size(), 2U);
  EXPECT_EQ(r["recoveries"][0]["lost"][0], "worker-3");
  EXPECT_EQ(r["recoveries"][1]["lost"][0], "worker-0");
  EXPECT_EQ(r["recoveries"][1]["recovery"], 2);
  EXPECT_NEAR(r["seconds"].get<double>(), 10 * 0.5 + 1, 1e-6);
  EXPECT_NEAR(r["tokens_per_second"].get<double>(), 640 / 5.0, 1e-6);
  EXPECT_NEAR(r["goodput"].get<double>(), 640 / 6.0, 1e-6);
  EXPECT_NEAR(r["effective_time_ratio"].get<double>(), 5.0 / 6, 1e-6);
}

// The first successor dies before it has committed anything.
TEST_F(record_writer_test, a_recovery_that_is_interrupted_is_told_by_whoever_ends_it) {
  five_steps();
  {
    process second(*this);
    second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5),
                           loss_of("worker-0", clock.now(), clock.now(), true));
    second.settle();
  }
  clock.advance(seconds(1));
  process third(*this);
  third.writer->goes_on(plan_number(2, 2, 5, {2}), at(5),
                        loss_of("worker-1", clock.now(), clock.now(), false));
  ASSERT_TRUE(third.commits(6, 6, 2, 1));
  const auto recovered = events("recovered");
  ASSERT_EQ(recovered.size(), 2U);
  EXPECT_EQ(recovered[0]["recovery"], 1);
  EXPECT_EQ(recovered[0]["to"], 2);
  EXPECT_NEAR(recovered[0]["recover_ms"].get<double>(), 1500, 1e-6);
  EXPECT_EQ(recovered[1]["recovery"], 2);
  EXPECT_NEAR(recovered[1]["recover_ms"].get<double>(), 500, 1e-6);
}

TEST_F(record_writer_test, a_plan_from_before_steps_with_lines_counts_them_as_lost_and_redone) {
  process only(*this);
  only.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  ASSERT_TRUE(only.commits(1, 5, 0, 3));
  only.writer->goes_on(plan_number(1, 0, 3, {0}), at(3),
                       loss_of("worker-1", clock.now(), clock.now(), false));
  ASSERT_TRUE(only.commits(4, 5, 1, 1));
  EXPECT_TRUE(events("recovered").empty()) << "these steps were committed before";
  ASSERT_TRUE(only.commits(6, 6, 1, 1));
  EXPECT_EQ(events("recovered")[0]["step"], 6);
  ASSERT_TRUE(only.finish(6));
  const nlohmann::json r = report();
  EXPECT_EQ(r["committed_steps_lost"], 2);
  EXPECT_EQ(r["steps_redone"], 2);
  EXPECT_EQ(steps().size(), 6U);
  const world_counters& c = only.end()->board().now().counters;
  EXPECT_EQ(c.generations[change_cause::rollback], 1U);
  EXPECT_EQ(c.redone_steps, 2U);
}

TEST_F(record_writer_test, what_was_validated_before_is_not_written_twice) {
  five_steps();
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5),
                         loss_of("worker-0", clock.now(), clock.now(), false));
  second.writer->validated(4, 2.5, 100);
  second.writer->validated(8, 2.0, 100);
  second.settle();
  ASSERT_EQ(events("validation").size(), 2U);
  EXPECT_EQ(events("validation")[1]["step"], 8);
}

}  // namespace
}  // namespace troupe::actors
