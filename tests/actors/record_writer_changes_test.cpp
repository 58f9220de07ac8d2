// What is told of changes, waits and slowness besides the events of losses.
#include "actors/record_writer.hpp"

#include <gmock/gmock.h>

#include "tests/actors/record_keepers.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class record_writer_changes_test : public record_keepers_test {
 protected:
  std::vector<std::string> traces() {
    std::vector<std::string> names;
    const auto there = files.list(run->file("traces"));
    if (there) {
      for (const directory_entry& e : *there) names.push_back(e.name);
    }
    return names;
  }
  nlohmann::json trace(const std::string& name) {
    return nlohmann::json::parse(*read_file(files, run->file("traces/" + name), 1 << 20));
  }
};

TEST_F(record_writer_changes_test, a_lost_coordinator_has_a_detection_time_too) {
  five_steps();
  process second(*this);
  clock.advance(milliseconds(2000));
  world_change how = loss_of("worker-0", clock.now(), clock.now(), true);
  how.lost[0].heard = clock.now() - milliseconds(700);
  how.lost[0].noticed = clock.now() - milliseconds(100);
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5), how);
  ASSERT_TRUE(second.commits(6, 6, 1, 2));
  ASSERT_EQ(events("member_lost").size(), 1u);
  EXPECT_NEAR(events("member_lost")[0]["detect_ms"].get<double>(), 600, 1e-6);
}

TEST_F(record_writer_changes_test, a_recovery_leaves_one_trace_when_its_first_step_is_committed) {
  five_steps();
  process second(*this);
  clock.advance(milliseconds(1000));
  world_change how = loss_of("worker-0", clock.now(), clock.now(), true);
  how.marks = {{"lost", "worker-0", clock.now()}, {"promised", "worker-2", clock.now()}};
  second.writer->goes_on(plan_number(1, 1, 5, {1, 2}), at(5), how);
  second.settle();
  clock.advance(milliseconds(20));
  second.writer->marked({"go", "worker-1", clock.now()});
  second.settle();
  EXPECT_THAT(traces(), testing::IsEmpty());
  ASSERT_TRUE(second.commits(6, 7, 1, 2));
  EXPECT_THAT(traces(), testing::ElementsAre("recovery-1.json"));
  std::map<std::string, double> at;
  const nlohmann::json whole = trace("recovery-1.json");
  for (const auto& e : whole["traceEvents"]) {
    if (e["ph"] == "i") at[e["name"]] = e["ts"].get<double>();
  }
  EXPECT_NEAR(at["go"] - at["promised"], 20e3, 1);
  EXPECT_NEAR(at["committed"] - at["go"], 500e3, 1);
  EXPECT_EQ(events("recovered")[0]["reason"], "somebody is gone");
}

TEST_F(record_writer_changes_test, only_the_newest_traces_are_kept) {
  process only(*this);
  only.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  ASSERT_TRUE(only.commits(1, 1, 0, 3));
  for (std::uint32_t n = 1; n <= 100; ++n) {
    only.writer->goes_on(plan_number(n, 0, n, {0, 1, 2}), at(n), {});
    ASSERT_TRUE(only.commits(n + 1, n + 1, n, 3));
  }
  EXPECT_EQ(traces().size(), 64u);
  EXPECT_THAT(traces(), testing::Contains("change-100.json"));
  EXPECT_THAT(traces(), testing::Not(testing::Contains("change-36.json")));
}

TEST_F(record_writer_changes_test, a_wait_for_members_is_an_event_a_state_and_a_line) {
  process only(*this);
  only.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  ASSERT_TRUE(only.commits(1, 2, 0, 3));
  only.writer->goes_on(plan_number(1, 0, 2, {0, 1}), at(2),
                       loss_of("worker-2", clock.now(), clock.now(), false));
  only.writer->waits_for_members("1 more member");
  only.settle();
  ASSERT_EQ(events("waiting").size(), 1u);
  EXPECT_EQ(events("waiting")[0]["reason"], "1 more member");
  EXPECT_EQ(events("waiting")[0]["step"], 2);
  EXPECT_EQ(events("waiting")[0]["computing"], 2);
  only.writer->goes_on(plan_number(2, 0, 2, {0, 1, 3}), at(2), {});
  only.writer->members_are_here(3.5);
  ASSERT_TRUE(only.commits(3, 3, 2, 3));
  ASSERT_EQ(events("waited").size(), 1u);
  EXPECT_EQ(events("waited")[0]["seconds"], 3.5);
  EXPECT_EQ(events("recovered").size(), 1u);
  monitor* const told = only.end();
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->board().now().state, run_state::training);
  EXPECT_THAT(shown(), HasSubstr("the run waits for 1 more member\n"));
}

TEST_F(record_writer_changes_test, what_a_person_asked_for_is_an_event) {
  process only(*this), other(*this);
  only.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  only.writer->world_asked_for("scale 2", 3, 2);
  other.writer->world_asked_for("scale 2", 3, 2);  // every member hears of it, one tells
  other.settle();
  only.settle();
  ASSERT_EQ(events("command").size(), 1u);
  EXPECT_EQ(events("command")[0]["asked"], "scale 2");
  EXPECT_EQ(events("command")[0]["from"], 3);
  EXPECT_EQ(events("command")[0]["to"], 2);
}

TEST_F(record_writer_changes_test, the_slow_member_is_named_once_a_minute_and_when_it_is_over) {
  process only(*this);
  only.writer->started(plan_number(0, 0, 0, {0, 1, 2}), at(0));
  std::uint64_t step = 0;
  const auto take = [&](int count, double slow) {
    for (int i = 0; i < count; ++i) {
      only.settle();
      clock.advance(milliseconds(100));
      committed_step c = step_number(++step, 0, 3);
      for (std::uint32_t m = 0; m < 3; ++m) {
        c.facts[member_id(m)].backward = m == 1 ? 0.02 * slow : 0.02;
        c.facts[member_id(m)].wait = m == 1 ? 0 : 0.02 * slow - 0.02;
      }
      ASSERT_TRUE(only.commit(c).has_value());
    }
  };
  take(20, 3.0);
  ASSERT_EQ(events("straggler").size(), 1u);
  const nlohmann::json told = events("straggler")[0];
  EXPECT_EQ(told["member"], "worker-1");
  EXPECT_EQ(told["phase"], "backward");
  EXPECT_EQ(told["over"], false);
  EXPECT_NEAR(told["ratio"].get<double>(), 3, 1e-6);
  EXPECT_THAT(told["reason"].get<std::string>(), HasSubstr("worker-1 is slow"));
  take(20, 1.0);
  ASSERT_EQ(events("straggler").size(), 2u);
  EXPECT_EQ(events("straggler")[1]["over"], true);
  take(20, 3.0);
  take(20, 1.0);
  EXPECT_EQ(events("straggler").size(), 2u) << "it comes and goes";
  take(600, 1.0);
  take(20, 3.0);
  EXPECT_EQ(events("straggler").size(), 3u);
  monitor* const writer = only.end();
  ASSERT_NE(writer, nullptr);
  EXPECT_NEAR(writer->board().member(member_id(1))->slowdown.value(), 3, 1e-6);
  EXPECT_NEAR(writer->board().member(member_id(1))->busy_ratio.value(), 1, 1e-6);
  EXPECT_LT(writer->board().member(member_id(0))->busy_ratio.value(), 0.5);
}

}  // namespace
}  // namespace troupe::actors
