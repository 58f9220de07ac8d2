#include "actors/chaos/judge.hpp"

#include <gmock/gmock.h>

#include "actors/chaos/chaos_report.hpp"
#include "actors/chaos/scenario_reader.hpp"
#include "tests/actors/chaos/run_by_hand.hpp"

namespace troupe::actors::chaos {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const std::string one_kill =
    "[[fault]]\nid = \"a\"\nkind = \"kill\"\ntarget = \"m2\"\nat_step = 11\n";

scenario scenario_of(const std::string& text) {
  result<scenario> s = read_scenario(
      "schema = 1\nname = \"x\"\n[cluster]\nmembers = 4\n[run]\nconfig = \"a\"\n" + text, "s.toml");
  EXPECT_TRUE(s) << (s ? "" : s.failure().message);
  return s ? *s : scenario();
}

run_by_hand sound_run() {
  run_by_hand r;
  r.steps(10);
  r.fault("a", fault_kind::kill, "worker-2");
  r.recovery("worker-2", 1, 1);
  r.steps(20, 1);
  r.facts.members_at_end = 3;
  return r;
}

verdict judged(const std::string& text, const run_facts& run,
               const std::optional<reference_facts>& reference) {
  return judge(scenario_of(text), run_mode::process, run, measure(run, reference), reference);
}

// Its words if the check is there and went as said; else what is wrong.
std::string words(const verdict& v, const std::string& name, bool passed) {
  for (const check& c : v.checks) {
    if (c.name == name) return c.passed == passed ? c.words : "went the other way: " + c.words;
  }
  return "no check " + name;
}

TEST(judge, passes_a_run_that_did_everything_right) {
  const run_by_hand r = sound_run();
  const verdict v =
      judged(one_kill +
                 "[expect]\nmembers = 3\nplans = [1, 2]\nunblock_p99 = \"1s\"\n"
                 "steps_lost = 0\nrollback = false\ngoodput_vs_available = [0.5, 2.0]",
             r.facts, reference_of(r.facts));
  for (const check& c : v.checks) EXPECT_TRUE(c.passed) << c.name << ": " << c.words;
  EXPECT_TRUE(v.passed);
  EXPECT_THAT(v.unseen, Contains("S-9"));
  EXPECT_THAT(v.unseen, Not(Contains("S-3")));
}

TEST(judge, fails_when_a_fault_did_not_happen_and_says_why) {
  run_by_hand r = sound_run();
  r.facts.faults[0].proven.reset();
  r.facts.faults[0].proof = "there was no sign of it";
  verdict v = judged(one_kill, r.facts, reference_of(r.facts));
  EXPECT_FALSE(v.passed);
  EXPECT_THAT(words(v, "fault a", false), HasSubstr("there was no sign of it"));
  r.facts.faults.clear();
  v = judged(one_kill, r.facts, reference_of(r.facts));
  EXPECT_THAT(words(v, "fault a", false), HasSubstr("its moment never came"));
  r.facts.refused.push_back({"a", "m2 is not alive", 11});
  v = judged(one_kill, r.facts, reference_of(r.facts));
  EXPECT_THAT(words(v, "fault a", false), HasSubstr("refused in step 11: m2 is not alive"));
  v = judged(one_kill + "must_happen = false\n", r.facts, reference_of(r.facts));
  EXPECT_EQ(words(v, "fault a", true), "no check fault a");
}

TEST(judge, wants_the_expected_exit_code_and_an_end_before_the_guard) {
  run_by_hand r = sound_run();
  r.facts.exit = 69;
  EXPECT_THAT(words(judged(one_kill, r.facts, reference_of(r.facts)), "exit", false),
              HasSubstr("exit code 69, expected 0"));
  EXPECT_THAT(words(judged(one_kill + "[expect]\nexit = 69\n", r.facts, reference_of(r.facts)),
                    "exit", true),
              HasSubstr("exit code 69"));
  r.facts.guard_struck = true;
  EXPECT_THAT(words(judged(one_kill, r.facts, reference_of(r.facts)), "guard", false),
              HasSubstr("longer than 10m"));
}

TEST(judge, fails_a_limit_that_is_passed_and_one_that_could_not_be_measured) {
  run_by_hand r = sound_run();
  const auto reference = reference_of(r.facts);
  EXPECT_THAT(words(judged("[expect]\nunblock_p99 = \"200ms\"\n", r.facts, reference),
                    "unblock_p99", false),
              HasSubstr("0.330 s, expected at most 0.200 s"));
  EXPECT_THAT(words(judged("[expect]\nmembers = 4\n", r.facts, reference), "members", false),
              HasSubstr("3, expected 4"));
  EXPECT_THAT(
      words(judged("[expect]\nexposed_p99 = \"1s\"\n", r.facts, reference), "exposed_p99", false),
      HasSubstr("nothing was measured"));
  EXPECT_THAT(words(judged("[expect]\nrollback = true\n", r.facts, reference), "rollback", false),
              HasSubstr("false, expected true"));
}

TEST(judge, compares_the_bits_step_by_step_and_at_the_end) {
  run_by_hand r = sound_run();
  const auto reference = reference_of(r.facts);
  EXPECT_THAT(words(judged("", r.facts, reference), "bits", true), HasSubstr("31 steps"));
  r.facts.weights_hash = "other";
  EXPECT_THAT(words(judged("", r.facts, reference), "bits", false), HasSubstr("other"));
  r.facts.weights_hash = "w";
  r.facts.steps[16].record.loss += 1e-15;
  EXPECT_THAT(words(judged("", r.facts, reference), "bits", false),
              HasSubstr("step 17 is the first that differs"));
  EXPECT_EQ(words(judged("[invariants]\nbits = \"none\"\n", r.facts, reference), "bits", true),
            "no check bits");
}

TEST(judge, compares_a_run_that_ended_early_as_far_as_it_came) {
  run_by_hand r = sound_run();
  const auto reference = reference_of(r.facts);
  r.facts.steps.resize(12);
  r.facts.exit = 69;
  r.facts.weights_hash = r.facts.state_hash = "";
  const std::string ends = "[expect]\nexit = 69\n";
  EXPECT_THAT(words(judged(ends, r.facts, reference), "bits", true),
              HasSubstr("the 12 committed steps are the same bits"));
  r.facts.exit = 0;
  EXPECT_THAT(words(judged("", r.facts, reference), "bits", false), HasSubstr("12 steps"))
      << "a run that says it is done must have all steps";
}

TEST(judge, takes_a_hash_for_a_reference) {
  run_by_hand r = sound_run();
  const std::string hash(32, 'a');
  scenario s = scenario_of("");
  s.reference = hash;
  const auto check_of = [&] {
    return judge(s, run_mode::process, r.facts, measure(r.facts, {}), std::nullopt);
  };
  EXPECT_THAT(words(check_of(), "bits", false), HasSubstr("weights_hash w"));
  r.facts.weights_hash = hash;
  EXPECT_THAT(words(check_of(), "bits", true), HasSubstr(hash));
}

TEST(judge, keeps_the_ledger) {
  run_by_hand r = sound_run();
  const auto reference = reference_of(r.facts);
  r.facts.steps[4].record.tokens = 999;
  EXPECT_THAT(words(judged("", r.facts, reference), "ledger", false),
              HasSubstr("step 5 counts 999 tokens, undisturbed 1000"));
  EXPECT_THAT(
      words(judged("[invariants]\nledger = \"complete\"\n", r.facts, reference), "ledger", true),
      HasSubstr("each of 31 steps stands once"));
  r.facts.steps[7].record.step = 7;
  EXPECT_THAT(
      words(judged("[invariants]\nledger = \"complete\"\n", r.facts, reference), "ledger", false),
      HasSubstr("step 8 is missing or stands twice"));
}

TEST(judge, wants_progress_after_quiet_and_no_late_plan) {
  run_by_hand r = sound_run();
  const auto reference = reference_of(r.facts);
  const std::string quiet = "[quiet]\nat_step = 21\nprogress = 10\nsettle = \"300ms\"\n";
  EXPECT_THAT(words(judged(quiet, r.facts, reference), "progress", false),
              HasSubstr("never reached"));
  r.facts.quiet_at = r.facts.steps[20].at;
  r.facts.steps_before_quiet = 21;
  EXPECT_THAT(words(judged(quiet, r.facts, reference), "progress", true), HasSubstr("10 steps"));
  EXPECT_THAT(words(judged(quiet, r.facts, reference), "settled", true), HasSubstr("300ms"));
  r.facts.steps_before_quiet = 22;
  EXPECT_THAT(words(judged(quiet, r.facts, reference), "progress", false), HasSubstr("9 steps"));
  r.event("generation", {{"number", 2}, {"from_step", 31}});
  EXPECT_THAT(words(judged(quiet, r.facts, reference), "settled", false), HasSubstr("1 plans"));
}

TEST(judge, sees_what_is_left_behind_and_a_broken_chain) {
  run_by_hand r = sound_run();
  const auto reference = reference_of(r.facts);
  r.facts.left_behind = {"process of worker-1"};
  r.facts.chain_trouble = "plan 3 is missing";
  const verdict v = judged("", r.facts, reference);
  EXPECT_THAT(words(v, "L-7", false), HasSubstr("process of worker-1"));
  EXPECT_THAT(words(v, "S-3", false), HasSubstr("plan 3 is missing"));
  const verdict off = judged("[invariants]\nL-7 = false\nS-3 = false\n", r.facts, reference);
  EXPECT_TRUE(off.passed);
}

TEST(chaos_report, is_whole_as_json_and_short_as_text) {
  run_by_hand r = sound_run();
  r.facts.refused.push_back({"b", "no spare is left", 3});
  const auto reference = reference_of(r.facts);
  const scenario s = scenario_of(one_kill + "[expect]\nunblock_p99 = \"1ms\"\n");
  const measured figures = measure(r.facts, reference);
  const verdict v = judge(s, run_mode::process, r.facts, figures, reference);
  const chaos_report report{s, run_mode::process, 7, "0.1", "run", "ref", r.facts, figures, v};
  json_line line;
  put(line, report);
  const auto page = parse_json(line.finish(), "chaos.json");
  ASSERT_TRUE(page) << page.failure().message;
  EXPECT_EQ(page->at("scenario_hash"), identity_of(s));
  EXPECT_EQ(page->at("seed"), 7);
  EXPECT_EQ(page->at("verdict"), "fail");
  EXPECT_EQ(page->at("faults").at(0).at("t0"), 1.0);
  EXPECT_EQ(page->at("faults").at(0).at("t5"), 1.5);
  EXPECT_TRUE(page->at("faults").at(0).at("t6").is_null());
  EXPECT_EQ(page->at("refused").at(0).at("why"), "no spare is left");
  EXPECT_EQ(page->at("metrics").at("rollback"), false);
  EXPECT_EQ(page->at("metrics").at("members"), 3);
  const std::string text = to_text(report);
  EXPECT_THAT(text, HasSubstr("x: FAIL (seed 7"));
  EXPECT_THAT(text, HasSubstr("FAIL  unblock_p99"));
  EXPECT_THAT(text, HasSubstr("kill worker-2: seen"));
}

}  // namespace
}  // namespace troupe::actors::chaos
