#include "actors/chaos/scenario_check.hpp"

#include <gmock/gmock.h>

#include "actors/chaos/scenario_reader.hpp"

namespace troupe::actors::chaos {
namespace {

using testing::HasSubstr;

const std::string head =
    "schema = 1\nname = \"x\"\n[cluster]\nmembers = 3\n[run]\nconfig = \"tiny.toml\"\n";

std::string problems(const std::string& text, run_mode mode = run_mode::process) {
  result<scenario> s = read_scenario(head + text, "s.toml");
  EXPECT_TRUE(s) << (s ? "" : s.failure().message);
  if (!s) return "";
  const status checked = check_scenario(*s, mode);
  return checked ? "" : checked.failure().message;
}

std::string fault_text(const std::string& id, const std::string& kind, const std::string& more) {
  return "[[fault]]\nid = \"" + id + "\"\nkind = \"" + kind + "\"\n" + more + "\n";
}

TEST(scenario_check, finds_nothing_wrong_with_a_sound_scenario) {
  EXPECT_EQ(problems(fault_text("a", "kill", "target = \"m1\"\nat_step = 5") +
                     fault_text("b", "stop", "target = \"any\"\nafter = \"a\"\nlasts = \"1s\"") +
                     "[quiet]\nat_step = 10\n[expect]\nmembers = 2\n"),
            "");
}

TEST(scenario_check, refuses_kinds_and_points_that_the_mode_cannot_do) {
  EXPECT_EQ(problems(fault_text("a", "drain", "target = \"m1\"\nat_step = 5")), "");
  const std::string point =
      fault_text("a", "kill", "target = \"m1\"\nat_step = 5\nat_point = \"save-begin\"");
  for (const run_mode mode : {run_mode::process, run_mode::sim}) {
    EXPECT_THAT(problems(point, mode), HasSubstr("nobody comes by the point save-begin"));
  }
  EXPECT_THAT(problems(fault_text("a", "cpu-steal", "target = \"m1\"\nat_step = 5"), run_mode::sim),
              HasSubstr("sim mode cannot do cpu-steal"));
  EXPECT_THAT(problems(fault_text("a", "kill", "target = \"m1\"\nat_step = 5"), run_mode::cluster),
              HasSubstr("no scenario on a cluster"));
  EXPECT_THAT(
      problems("[random]\nto_step = 5\nrate = 10\nkinds = { cpu-steal = 1 }\n", run_mode::sim),
      HasSubstr("random.kinds: sim mode cannot do cpu-steal"));
}

TEST(scenario_check, at_a_point_inside_of_a_worker_only_the_worker_itself_can_strike) {
  const std::string at = "target = \"m1\"\nat_step = 5\nat_point = \"voted\"\n";
  for (const char* kind : {"kill", "stop", "exit", "throw", "hang", "nan", "cut", "drop"}) {
    EXPECT_EQ(problems(fault_text("a", kind, at)), "") << kind;
  }
  for (const std::string& name : point_names()) {
    if (!is_reached(name)) continue;
    EXPECT_EQ(problems(fault_text("a", "kill",
                                  "target = \"m1\"\nat_step = 5\nat_point = \"" + name + "\"")),
              "")
        << name;
  }
  EXPECT_THAT(problems(fault_text("a", "notice", at)),
              HasSubstr("notice is done from outside of a worker"));
  EXPECT_THAT(problems(fault_text("a", "kill", at + "chance = 0.5")),
              HasSubstr("not left to chance"));
}

TEST(scenario_check, refuses_a_mode_that_the_scenario_is_not_for) {
  result<scenario> s =
      read_scenario("schema = 1\nname = \"x\"\nmode = [\"sim\"]\n[run]\nconfig = \"a\"\n", "s");
  ASSERT_TRUE(s);
  EXPECT_TRUE(check_scenario(*s, run_mode::sim));
  const status refused = check_scenario(*s, run_mode::process);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.failure().message, HasSubstr("not meant for process"));
}

TEST(scenario_check, refuses_ids_twice_and_chains_into_nothing_or_in_a_circle) {
  const std::string kill = "target = \"m1\"\nat_step = 5";
  EXPECT_THAT(problems(fault_text("a", "kill", kill) + fault_text("a", "kill", kill)),
              HasSubstr("two faults have this id"));
  EXPECT_THAT(problems(fault_text("head", "kill", kill) +
                       fault_text("b", "kill", "target = \"m1\"\nafter = \"haed\"")),
              HasSubstr("there is no such fault; did you mean head?"));
  const std::string circle = problems(fault_text("a", "kill", "target = \"m1\"\nafter = \"b\"") +
                                      fault_text("b", "kill", "target = \"m1\"\nafter = \"a\"") +
                                      fault_text("c", "kill", "target = \"m1\"\nafter = \"a\""));
  EXPECT_THAT(circle, HasSubstr("fault a: waits for itself"));
  EXPECT_THAT(circle, HasSubstr("fault b: waits for itself"));
  EXPECT_THAT(circle, testing::Not(HasSubstr("fault c"))) << "c only hangs on the circle";
}

TEST(scenario_check, refuses_members_and_domains_that_do_not_exist) {
  EXPECT_THAT(problems(fault_text("a", "kill", "target = \"m3\"\nat_step = 5")),
              HasSubstr("there is no m3: 3 members and 0 spares are m0 to m2"));
  EXPECT_THAT(problems(fault_text("a", "kill", "target = \"any-not:m9\"\nat_step = 5")),
              HasSubstr("there is no m9"));
  EXPECT_THAT(problems(fault_text("a", "kill", "target = \"domain:3\"\nat_step = 5")),
              HasSubstr("there is no domain 3"));
  EXPECT_THAT(problems("[quiet]\nat_step = 3\ncore = [\"m7\"]\n"), HasSubstr("there is no m7"));
}

TEST(scenario_check, refuses_a_join_without_a_spare) {
  EXPECT_THAT(problems(fault_text("a", "join", "at_step = 5")), HasSubstr("set cluster.spares"));
}

TEST(scenario_check, refuses_what_would_never_happen) {
  EXPECT_THAT(problems(fault_text("a", "kill", "target = \"m1\"\nat_step = 10") +
                       "[quiet]\nat_step = 10\n"),
              HasSubstr("never happens: step 10 is quiet already"));
  EXPECT_THAT(problems(fault_text("a", "kill", "target = \"m1\"\nat_time = \"5s\"") +
                       "[quiet]\nat_time = \"4s\"\n"),
              HasSubstr("never happens"));
}

TEST(scenario_check, refuses_to_judge_what_the_mode_cannot_see) {
  EXPECT_THAT(problems("[expect]\nrefused_old_commits = [1, 5]\n"),
              HasSubstr("process mode cannot measure it"));
  EXPECT_THAT(problems("[invariants]\nS-9 = true\n"), HasSubstr("cannot see whether it holds"));
  EXPECT_EQ(problems("[invariants]\nS-9 = false\nS-3 = true\n"), "");
  EXPECT_EQ(problems("[invariants]\nS-9 = true\n", run_mode::sim), "");
}

}  // namespace
}  // namespace troupe::actors::chaos
