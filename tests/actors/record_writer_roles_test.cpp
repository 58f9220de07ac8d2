// Who may write into the records, and what the others do meanwhile.
#include "actors/record_writer.hpp"

#include <gmock/gmock.h>

#include "tests/actors/record_keepers.hpp"

namespace troupe::actors {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

using record_writer_roles_test = record_keepers_test;

// It noticed the loss and could not make the plan that follows.
TEST_F(record_writer_roles_test, a_loss_that_was_told_before_the_role_moved_is_not_told_again) {
  {
    process first(*this);
    first.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
    ASSERT_TRUE(first.commits(1, 2, 0, 3));
    first.writer->member_lost(member_id(2), "its link broke");
    first.settle();
  }
  process second(*this);
  world_change how = loss_of("worker-0", clock.now(), clock.now(), false);
  how.lost.push_back({"worker-2", "its link broke"});
  second.writer->goes_on(plan_number(1, 1, 2, {1}), at(2), how);
  ASSERT_TRUE(second.commits(3, 3, 1, 1));
  const auto lost = events("member_lost");
  ASSERT_EQ(lost.size(), 2U);
  EXPECT_EQ(lost[0]["member"], "worker-2");
  EXPECT_EQ(lost[1]["member"], "worker-0");
  EXPECT_THAT(events("recovered")[0]["lost"], ElementsAre("worker-0", "worker-2"));
}

TEST_F(record_writer_roles_test,
       whoever_opened_the_records_before_the_first_plan_tells_of_visitors) {
  process first(*this);
  EXPECT_EQ(first.end(), nullptr);
  process convener(*this, true);
  convener.writer->visitor_refused("another config");
  convener.settle();
  EXPECT_THAT(shown(), HasSubstr("refused somebody who wanted to join: another config"));
  EXPECT_NE(convener.end(), nullptr) << "a start that comes to nothing has last words";
}

TEST_F(record_writer_roles_test,
       one_that_rests_writes_nothing_and_knows_all_when_it_is_called_again) {
  process first(*this), second(*this);
  first.writer->member_lost(member_id(1), "told to one that never had the role");
  first.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  ASSERT_TRUE(first.commits(1, 3, 0, 3));
  first.writer->rests();
  first.settle();
  EXPECT_EQ(first.rests, 1);
  world_change nothing;
  second.writer->goes_on(plan_number(1, 1, 3, {0, 1, 2}), at(3), nothing);
  ASSERT_TRUE(second.commits(4, 6, 1, 3));
  EXPECT_FALSE(first.commit(step_number(4, 0, 3))) << "nobody may be told that it is written";
  second.writer->rests();
  second.settle();
  first.writer->goes_on(plan_number(2, 0, 6, {0, 1, 2}), at(6), nothing);
  ASSERT_TRUE(first.commits(6, 7, 2, 3));
  EXPECT_EQ(steps().size(), 7U);
  EXPECT_TRUE(events("member_lost").empty());
  ASSERT_TRUE(first.finish(7));
  EXPECT_EQ(report()["generations"], 3);
}

// It was never told that it had lost the role, and gets it again.
TEST_F(record_writer_roles_test, one_whose_files_somebody_else_has_written_into_reads_them_again) {
  process first(*this), second(*this);
  world_change nothing;
  first.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  ASSERT_TRUE(first.commits(1, 3, 0, 3));
  second.writer->goes_on(plan_number(1, 1, 3, {0, 1, 2}), at(3), nothing);
  ASSERT_TRUE(second.commits(4, 6, 1, 3));
  first.writer->goes_on(plan_number(2, 0, 6, {0, 1, 2}), at(6), nothing);
  ASSERT_TRUE(first.commits(6, 7, 2, 3));
  EXPECT_EQ(steps().size(), 7U);
}

TEST_F(record_writer_roles_test, one_that_stood_still_looks_for_its_role_before_it_writes) {
  process first(*this);
  first.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  ASSERT_TRUE(first.commits(1, 3, 0, 3));
  clock.advance(seconds(5));
  ASSERT_TRUE(first.commits(4, 4, 0, 3)) << "nobody has taken the role";
  first.ours = false;
  ASSERT_TRUE(first.commits(5, 5, 0, 3)) << "there was no pause to look after";
  clock.advance(seconds(5));
  EXPECT_FALSE(first.commit(step_number(6, 0, 3)));
  EXPECT_EQ(steps().size(), 5U);
  EXPECT_EQ(first.rests, 1);
  EXPECT_FALSE(first.finish(6));
  EXPECT_TRUE(events("finished").empty());
  EXPECT_EQ(first.end(), nullptr) << "the last words are the successor's";
}

TEST_F(record_writer_roles_test, records_that_cannot_be_opened_are_an_error_of_the_first_step) {
  write_into_steps("{\"step\":7}\n");
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5), {});
  const std::optional<status> answered = second.commit(step_number(6, 1, 2));
  ASSERT_TRUE(answered && !*answered);
  EXPECT_THAT(answered->failure().message, HasSubstr("steps.jsonl:1"));
}

TEST_F(record_writer_roles_test, a_heartbeat_shows_what_a_member_does_and_at_which_step) {
  process only(*this);
  only.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  only.settle();
  clock.advance(seconds(1));
  only.writer->heard_of(member_id(1), {.step = 7, .doing = protocol::phase::validating});
  only.settle();
  const world_status& seen = only.end()->board().now();
  EXPECT_EQ(seen.members[1].phase, protocol::phase::validating);
  EXPECT_EQ(seen.members[1].step, 7U);
  EXPECT_EQ(seen.members[1].heard, clock.wall());
  EXPECT_FALSE(seen.members[2].phase);
}

TEST_F(record_writer_roles_test, a_successor_shows_the_world_as_it_is_now) {
  five_steps();
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5),
                         loss_of("worker-0", clock.now(), clock.now(), false));
  second.settle();
  const world_status& seen = second.end()->board().now();
  EXPECT_EQ(seen.state, run_state::recovering);
  EXPECT_EQ(seen.generation, 1U);
  EXPECT_EQ(seen.step, 5U);
  EXPECT_EQ(seen.loss, steps().back().loss);
  EXPECT_EQ(seen.val_loss, 2.5);
  ASSERT_EQ(seen.members.size(), 2U);
  EXPECT_EQ(seen.members[0].name, "worker-1");
  EXPECT_EQ(seen.counters.losses[loss_kind::heartbeat], 1U);
  EXPECT_EQ(seen.counters.generations[change_cause::lost], 1U);
}

TEST_F(record_writer_roles_test, time_goes_on_from_process_to_process) {
  five_steps();
  clock.advance(seconds(1));
  process second(*this);
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5), {});
  second.settle();
  double before = 0;
  for (const nlohmann::json& e : events("generation")) {
    EXPECT_GE(e["mono"].get<double>(), before);
    before = e["mono"].get<double>();
  }
  EXPECT_NEAR(before, 5 * 0.5 + 1, 1e-6);
}

}  // namespace
}  // namespace troupe::actors
