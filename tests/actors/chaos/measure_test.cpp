#include "actors/chaos/measure.hpp"

#include <gmock/gmock.h>

#include "tests/actors/chaos/run_by_hand.hpp"

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;

double of(const measured& m, const std::string& name) {
  const auto found = m.metrics.find(name);
  EXPECT_NE(found, m.metrics.end()) << name;
  return found == m.metrics.end() ? -1 : found->second;
}

TEST(measure, tells_every_moment_of_a_recovery) {
  run_by_hand r;
  r.steps(10);
  r.fault("a", fault_kind::kill, "worker-2");
  r.recovery("worker-2", 1, 1);
  r.steps(20, 1);
  const measured m = measure(r.facts, std::nullopt);
  const fault_times& t = m.faults.at(0);
  EXPECT_EQ(t.t0, 1s);
  EXPECT_EQ(t.t1, 1150ms) << "50 ms before its record";
  EXPECT_EQ(t.t2, 1150ms + 180ms);
  EXPECT_EQ(t.t3, 1300ms);
  EXPECT_EQ(t.t5, 1500ms);
  EXPECT_EQ(t.t6, std::nullopt) << "no record tells it";
  EXPECT_EQ(t.t7, 2000ms) << "the fifth step in a row after the slow first one";
  EXPECT_EQ(t.stall, 500ms - 100ms);
  EXPECT_EQ(t.plans, 1u);
  EXPECT_NEAR(of(m, "detection_p99"), 0.15, 1e-9);
  EXPECT_NEAR(of(m, "decision_p50"), 0.15, 1e-9);
  EXPECT_NEAR(of(m, "unblock_max"), 0.33, 1e-9);
  EXPECT_NEAR(of(m, "mttr"), 0.4, 1e-9);
  EXPECT_EQ(of(m, "recoveries"), 1);
  EXPECT_EQ(of(m, "false_suspicions"), 0);
  EXPECT_EQ(of(m, "steps_lost"), 0);
  EXPECT_EQ(of(m, "rollback"), 0);
}

TEST(measure, gives_each_loss_to_the_fault_that_caused_it) {
  run_by_hand r;
  r.steps(5);
  r.fault("a", fault_kind::kill, "worker-1");
  r.recovery("worker-1", 1, 1);
  r.steps(10, 1);
  r.fault("b", fault_kind::kill, "worker-1");  // its next life
  r.recovery("worker-1", 2, 2);
  r.steps(10, 2);
  const measured m = measure(r.facts, std::nullopt);
  EXPECT_EQ(*m.faults.at(0).t1 - m.faults.at(0).t0, 150ms);
  EXPECT_EQ(*m.faults.at(1).t1 - m.faults.at(1).t0, 150ms);
  EXPECT_EQ(of(m, "recoveries"), 2);
  EXPECT_EQ(of(m, "flaps_max"), 1);
}

TEST(measure, leaves_out_what_nobody_recorded) {
  run_by_hand r;
  r.steps(10);
  r.fault("a", fault_kind::kill, "worker-2");
  const measured m = measure(r.facts, std::nullopt);
  EXPECT_EQ(m.faults.at(0).t1, std::nullopt);
  EXPECT_THAT(m.metrics, Not(Contains(Key("detection_p99"))));
  EXPECT_THAT(m.metrics, Not(Contains(Key("mttr"))));
  EXPECT_THAT(m.metrics, Not(Contains(Key("goodput_vs_fault_free"))));
}

TEST(measure, does_not_take_steps_of_a_dying_run_for_a_recovery) {
  run_by_hand r;
  r.steps(10);
  r.fault("a", fault_kind::kill, "worker-2");
  r.event("member_lost", {{"member", "worker-2"}, {"cause", "gone"}});
  r.steps(1);
  const measured m = measure(r.facts, std::nullopt);
  EXPECT_TRUE(m.faults.at(0).t1);
  EXPECT_FALSE(m.faults.at(0).t5);
  EXPECT_EQ(of(m, "recoveries"), 0);
}

TEST(measure, does_not_count_what_was_never_proven) {
  run_by_hand r;
  r.steps(10);
  r.fault("a", fault_kind::kill, "worker-2").proven.reset();
  r.recovery("worker-2", 1, 1);
  const measured m = measure(r.facts, std::nullopt);
  EXPECT_FALSE(m.faults.at(0).t1);
}

TEST(measure, calls_it_false_to_suspect_whom_nobody_struck) {
  run_by_hand r;
  r.steps(10);
  r.fault("a", fault_kind::stop, "worker-2").over = 1100ms;
  r.fault("b", fault_kind::cpu_steal, "worker-3");
  r.now += 100ms;
  r.event("member_lost", {{"member", "worker-2"}, {"cause", "silent"}});
  r.event("member_lost", {{"member", "worker-3"}, {"cause", "silent"}});
  r.now += 60s;
  r.event("member_lost", {{"member", "worker-2"}, {"cause", "silent"}});
  const measured m = measure(r.facts, std::nullopt);
  EXPECT_EQ(of(m, "false_suspicions"), 2);
  EXPECT_THAT(m.false_suspicions, ElementsAre(HasSubstr("worker-3"), HasSubstr("worker-2")))
      << "a busy neighbour is no reason, and long after a stop is none either";
}

TEST(measure, sees_steps_that_a_plan_takes_back) {
  run_by_hand r;
  r.steps(10);
  r.now += 1s;
  r.event("generation", {{"number", 1}, {"from_step", 7}});
  const measured m = measure(r.facts, std::nullopt);
  EXPECT_EQ(of(m, "steps_lost"), 3);
  EXPECT_EQ(of(m, "rollback"), 1);
}

TEST(measure, believes_what_the_plan_says_was_recorded_before_it) {
  run_by_hand r;
  r.steps(10);
  r.event("generation", {{"number", 1}, {"from_step", 10}, {"recorded", 12}});
  EXPECT_EQ(of(measure(r.facts, std::nullopt), "steps_lost"), 2);
}

TEST(measure, compares_rates_with_the_undisturbed_run_and_with_who_was_there) {
  run_by_hand r;
  r.steps(10);
  const reference_facts reference = reference_of(r.facts);
  measured m = measure(r.facts, reference);
  EXPECT_NEAR(of(m, "goodput"), 10000, 1e-6);
  EXPECT_NEAR(of(m, "goodput_vs_fault_free"), 1, 1e-9);
  EXPECT_NEAR(of(m, "goodput_vs_available"), 1, 1e-9);
  EXPECT_NEAR(of(m, "effective_time_ratio"), 1, 1e-9);
  // Half of them are gone in the second half of twice the time: three quarters were available.
  r.now = 1900ms;
  r.steps(1);
  r.facts.steps.back().record.tokens = 0;
  r.facts.steps.back().record.seconds = 0;
  r.facts.populations.push_back({1s, 2});
  m = measure(r.facts, reference);
  EXPECT_NEAR(of(m, "goodput_vs_fault_free"), 0.5, 1e-9);
  EXPECT_NEAR(of(m, "goodput_vs_available"), 0.5 / 0.75, 1e-9);
  EXPECT_NEAR(of(m, "effective_time_ratio"), 0.5, 1e-9);
}

TEST(measure, finds_the_worst_window_that_the_average_hides) {
  run_by_hand r;
  r.steps(2000);
  r.now += 30s;
  r.steps(2000);
  const measured m = measure(r.facts, std::nullopt);
  EXPECT_NEAR(of(m, "effective_time_ratio"), 400.0 / 430, 1e-9);
  EXPECT_NEAR(of(m, "effective_time_ratio_min"), 0.5, 0.01);
}

TEST(quantile, is_the_smallest_value_that_covers_its_share) {
  EXPECT_EQ(quantile({3, 1, 2, 4}, 0.5), 2);
  EXPECT_EQ(quantile({3, 1, 2, 4}, 0.99), 4);
  EXPECT_EQ(quantile({3, 1, 2, 4}, 0), 1);
  EXPECT_EQ(quantile({7}, 0.5), 7);
}

}  // namespace
}  // namespace troupe::actors::chaos
