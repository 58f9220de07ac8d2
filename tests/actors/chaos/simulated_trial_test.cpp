// Every kind of fault that a simulated world can have ends with the undisturbed run's bits.
#include "actors/chaos/simulated_trial.hpp"

#include <gmock/gmock.h>

#include "actors/chaos/judge.hpp"
#include "actors/chaos/scenario_check.hpp"
#include "actors/chaos/scenario_reader.hpp"

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

simulated_settings usual(std::uint64_t steps = 60) {
  simulated_settings s;
  s.steps = steps;
  // A step takes some two milliseconds of virtual time.
  s.heartbeat = 2ms;
  s.suspect = 15ms;
  s.evict = 45ms;
  return s;
}

// Where frames are lost a member must not be given up sooner than they are sent again.
simulated_settings patient() {
  simulated_settings s = usual();
  s.heartbeat = 100ms;
  s.suspect = 1s;
  s.evict = 3s;
  return s;
}

scenario of(const std::string& text) {
  result<scenario> s = read_scenario(
      "schema = 1\nname = \"x\"\n[cluster]\nmembers = 4\nspares = 1\n[run]\nconfig = \"a\"\n"
      "guard = \"60s\"\n" +
          text,
      "s.toml");
  EXPECT_TRUE(s) << (s ? "" : s.failure().message);
  if (!s) return {};
  const status sound = check_scenario(*s, run_mode::sim);
  EXPECT_TRUE(sound) << (sound ? "" : sound.failure().message);
  return *s;
}

std::string fault_text(const std::string& kind, const std::string& more) {
  return "[[fault]]\nid = \"a\"\nkind = \"" + kind + "\"\n" + more + "\n";
}

struct judged {
  run_facts run;
  verdict outcome;
  std::string failed() const {
    std::string all;
    for (const check& c : outcome.checks) {
      if (!c.passed) all += c.name + ": " + c.words + "\n";
    }
    return all;
  }
};

judged judged_run(const scenario& s, std::uint64_t seed, const simulated_settings& settings) {
  scenario calm = s;
  calm.faults.clear();
  calm.random.reset();
  calm.quiet.reset();
  const auto reference = reference_of(run_in_simulation(calm, seed, settings));
  judged j{run_in_simulation(s, seed, settings), {}};
  j.outcome = judge(s, run_mode::sim, j.run, measure(j.run, reference), reference);
  return j;
}

struct every_kind : testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(every_kind, ends_with_the_undisturbed_bits) {
  const auto [kind, more] = GetParam();
  const scenario s = of(fault_text(kind, more));
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const bool loses = kind == std::string("drop") || kind == std::string("corrupt");
    const judged j = judged_run(s, seed, loses ? patient() : usual());
    EXPECT_TRUE(j.outcome.passed) << kind << ", seed " << seed << ":\n" << j.failed();
    EXPECT_GT(j.run.invariant_checks, 1000U);
    EXPECT_EQ(j.run.steps.size(), 60U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    kinds, every_kind,
    testing::Values(
        std::pair("kill", "target = \"any\"\nat_step = 10"),
        std::pair("kill", "target = \"coordinator\"\nat_step = 10\nat_point = \"voted\""),
        std::pair("exit", "target = \"any\"\nat_step = 10"),
        std::pair("throw", "target = \"any\"\nat_step = 10\nparams = { actor = \"rank\" }"),
        std::pair("throw", "target = \"coordinator\"\nat_step = 10"),
        std::pair("stop", "target = \"any\"\nat_step = 10\nlasts = \"200ms\""),
        std::pair("hang", "target = \"any\"\nat_step = 10\nlasts = \"300ms\""),
        std::pair("join", "at_step = 10"), std::pair("notice", "target = \"any\"\nat_step = 10"),
        std::pair("cut", "target = \"any\"\nat_step = 10\nlasts = \"5ms\""),
        std::pair("cut", "target = \"coordinator\"\nat_step = 10\nlasts = \"100ms\""),
        std::pair("cut", "target = \"pair:m1-m2\"\nat_step = 10\nlasts = \"20ms\""),
        std::pair("drop", "target = \"all\"\nat_step = 10\nlasts = 10\nparams = { share = 0.1 }"),
        std::pair("delay",
                  "target = \"all\"\nat_step = 10\nlasts = 10\nparams = { by = \"2ms\", "
                  "jitter = \"2ms\" }"),
        std::pair("dup", "target = \"all\"\nat_step = 10\nlasts = 10"),
        std::pair("reorder",
                  "target = \"all\"\nat_step = 10\nlasts = 10\nparams = { share = 0.2, by "
                  "= \"2ms\" }"),
        std::pair("corrupt",
                  "target = \"all\"\nat_step = 10\nlasts = 10\nparams = { plane = "
                  "\"control\", share = 0.1 }"),
        std::pair("corrupt",
                  "target = \"all\"\nat_step = 10\nlasts = 10\nparams = { plane = "
                  "\"bulk\", messages = 1 }")));

TEST(simulated_trial_test, each_sort_of_bulk_message_is_missed_when_it_is_damaged) {
  for (const char* message : {"node", "sum", "parameters"}) {
    const scenario s =
        of(fault_text("corrupt",
                      "target = \"all\"\nat_step = 10\nlasts = 10\nparams = { plane = \"bulk\", "
                      "messages = 1, message = \"" +
                          std::string(message) + "\" }"));
    const judged j = judged_run(s, 3, usual());
    EXPECT_TRUE(j.outcome.passed) << message << ":\n" << j.failed();
    EXPECT_GT(j.run.plans, 1U) << message;
  }
}

TEST(simulated_trial_test, what_an_older_plan_said_is_heard_again_and_does_nothing) {
  const scenario s = of(fault_text("kill", "target = \"m3\"\nat_step = 10") +
                        "[[fault]]\nid = \"b\"\nkind = \"replay\"\ntarget = \"all\"\nat_step = 25\n"
                        "lasts = 20\nparams = { share = 0.3 }\n");
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const judged j = judged_run(s, seed, usual());
    EXPECT_TRUE(j.outcome.passed) << seed << ":\n" << j.failed();
  }
}

// Whoever the others have gone on without may never hear it from them.
TEST(simulated_trial_test, one_that_was_cut_off_for_longer_than_anybody_waits_comes_again) {
  const scenario s = of(fault_text("cut",
                                   "target = \"any-not:coordinator\"\nat_step = 10\n"
                                   "lasts = \"400ms\"") +
                        "[expect]\nmembers = 4\n");
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const judged j = judged_run(s, seed, usual(400));
    EXPECT_TRUE(j.outcome.passed) << seed << ":\n" << j.failed();
  }
}

TEST(simulated_trial_test, a_hang_makes_the_step_late_and_changes_no_plan) {
  const judged j = judged_run(
      of(fault_text("hang", "target = \"m2\"\nat_step = 10\nlasts = \"500ms\"")), 1, usual());
  EXPECT_TRUE(j.outcome.passed) << j.failed();
  EXPECT_EQ(j.run.plans, 1U);
  EXPECT_GE(j.run.ended, 500ms);
}

TEST(simulated_trial_test, two_runs_of_one_seed_are_the_same) {
  const scenario s =
      of("[random]\nfrom_step = 5\nto_step = 40\nrate = 200000\nmax_open = 2\n"
         "kinds = { kill = 2, stop = 1, cut = 1, drop = 1, corrupt = 1, join = 1 }\n");
  const run_facts first = run_in_simulation(s, 7, usual()),
                  second = run_in_simulation(s, 7, usual());
  ASSERT_EQ(first.faults.size(), second.faults.size());
  EXPECT_GT(first.faults.size(), 0U);
  EXPECT_EQ(first.ended, second.ended);
  EXPECT_EQ(first.weights_hash, second.weights_hash);
}

TEST(simulated_trial_test, a_fault_that_does_not_happen_fails_the_run) {
  const judged j =
      judged_run(of(fault_text("kill", "target = \"joiner\"\nat_step = 10")), 1, usual());
  EXPECT_FALSE(j.outcome.passed);
}

}  // namespace
}  // namespace troupe::actors::chaos
