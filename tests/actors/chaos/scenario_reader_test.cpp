#include "actors/chaos/scenario_reader.hpp"

#include <gmock/gmock.h>

#include "config/base/memory_file.hpp"

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string head = "schema = 1\nname = \"x\"\n[run]\nconfig = \"tiny.toml\"\n";

scenario read(const std::string& text) {
  result<scenario> s = read_scenario(text, "s.toml");
  EXPECT_TRUE(s) << (s ? "" : s.failure().message);
  return s ? *s : scenario();
}

std::string trouble(const std::string& text) {
  const result<scenario> s = read_scenario(text, "s.toml");
  EXPECT_FALSE(s) << text;
  if (s) return "";
  EXPECT_EQ(s.failure().code, exit_code::bad_config);
  return s.failure().message;
}

std::string one_fault(const std::string& keys) { return head + "[[fault]]\nid = \"f\"\n" + keys; }

TEST(scenario_reader, reads_every_table) {
  const scenario s = read(R"(
schema = 1
name   = "all-of-it"
about  = "Everything."
seed   = 7
repeat = 3
mode   = ["sim", "process"]

[cluster]
members = 4
spares  = 2
domains = [["m0", "m1"], ["m2"]]

[run]
config    = "tiny.toml"
set       = { "training.steps" = 60, checkpoint.interval = 20, "optimizer.lr" = 0.5, "job.name" = "j", "checkpoint.enable" = false }
reference = "none"
guard     = "90s"

[[fault]]
id       = "head"
kind     = "kill"
target   = "coordinator"
at_step  = [17, "20..22"]
at_point = "commit-sent:1"
chance   = 0.5
again    = "each-attempt"
must_happen = false

[[fault]]
id     = "witness"
kind   = "cut"
target = "receiver:head"
after  = "head"
plus   = "1ms"
lasts  = "5s"
params = { plane = "bulk" }

[random]
from_step = 20
to_step = 30
rate = 124
min_gap = "2s"
max_open = 2
swarm = true
kinds = { kill = 4, cpu-steal = 1 }
spare_roles = ["coordinator"]

[limits]
inside_promise = false
may_lose = [3]

[quiet]
at_step = 40
core = ["m1"]
settle = "20s"
progress = 10

[invariants]
S-3 = true
S-9 = false
bits = "none"
ledger = "complete"

[expect]
exit = 69
members = 3
steps_redone = [0, 1]
unblock_p99 = "1s"
goodput = [0.9, 1.0]
rollback = false
)");
  EXPECT_EQ(s.name, "all-of-it");
  EXPECT_EQ(s.seed, 7u);
  EXPECT_EQ(s.repeat, 3u);
  EXPECT_THAT(s.modes, ElementsAre(run_mode::sim, run_mode::process));
  EXPECT_EQ(s.members, 4u);
  EXPECT_EQ(s.spares, 2u);
  EXPECT_THAT(s.domains,
              ElementsAre(ElementsAre(member_id(0), member_id(1)), ElementsAre(member_id(2))));
  using testing::Pair;
  EXPECT_THAT(s.sets, ElementsAre(Pair("checkpoint.enable", "false"),
                                  Pair("checkpoint.interval", "20"), Pair("job.name", "j"),
                                  Pair("optimizer.lr", "0.5"), Pair("training.steps", "60")));
  EXPECT_EQ(s.guard, 90s);
  ASSERT_EQ(s.faults.size(), 2u);
  const auto& at = std::get<at_steps>(s.faults[0].when);
  EXPECT_THAT(at.steps, ElementsAre(step_range{17, 17}, step_range{20, 22}));
  EXPECT_EQ(to_text(at.point), "commit-sent:1");
  EXPECT_TRUE(s.faults[0].each_attempt);
  EXPECT_FALSE(s.faults[0].must_happen);
  EXPECT_EQ(s.faults[0].count, std::nullopt) << "at every one of its steps";
  EXPECT_EQ(std::get<after_fault>(s.faults[1].when).plus, extent(duration(1ms)));
  EXPECT_EQ(s.faults[1].lasts, lifetime(duration(5s)));
  EXPECT_EQ(std::get<std::string>(s.faults[1].params.at("plane")), "bulk");
  EXPECT_THAT(s.random->kinds,
              ElementsAre(Pair(fault_kind::kill, 4.0), Pair(fault_kind::cpu_steal, 1.0)));
  EXPECT_FALSE(s.inside_promise);
  EXPECT_THAT(s.may_lose, ElementsAre(3));
  EXPECT_THAT(s.quiet->core, ElementsAre(member_id(1)));
  EXPECT_THAT(s.invariants, ElementsAre(Pair("S-3", true), Pair("S-9", false)));
  EXPECT_FALSE(s.equal_bits);
  EXPECT_EQ(s.expect.at("exit").least, 69);
  EXPECT_EQ(s.expect.at("unblock_p99").least, 0) << "one duration is an upper limit";
  EXPECT_EQ(s.expect.at("unblock_p99").most, 1);
  EXPECT_EQ(s.expect.at("steps_redone").most, 1);
  EXPECT_EQ(s.expect.at("rollback").most, 0);
}

TEST(scenario_reader, strikes_once_where_one_moment_is_named_and_always_where_many_are) {
  EXPECT_EQ(read(one_fault("kind=\"kill\"\ntarget=\"any\"\nat_step=3")).faults[0].count, 1u);
  EXPECT_EQ(read(one_fault("kind=\"kill\"\ntarget=\"any\"\nat_time=\"2s\"")).faults[0].count, 1u);
  EXPECT_EQ(read(one_fault("kind=\"kill\"\ntarget=\"any\"\nevery=\"2s\"")).faults[0].count,
            std::nullopt);
  EXPECT_EQ(read(one_fault("kind=\"kill\"\ntarget=\"any\"\nrate=60\ncount=2")).faults[0].count, 2u);
}

TEST(scenario_reader, names_file_line_key_and_the_nearest_name) {
  EXPECT_THAT(trouble(head + "[quiet]\nat_stop = 3\n"),
              HasSubstr("s.toml:6: quiet.at_stop: there is no such key; did you mean at_step?"));
  EXPECT_THAT(trouble(one_fault("kind = \"kil\"\ntarget = \"any\"\nat_step = 1")),
              HasSubstr("s.toml:7: fault[0].kind: there is no fault \"kil\"; did you mean kill?"));
  EXPECT_THAT(trouble(one_fault("kind = \"kill\"\ntarget = \"cordinator\"\nat_step = 1")),
              HasSubstr("s.toml:8: fault[0].target: there is no target \"cordinator\"; did you "
                        "mean coordinator?"));
  EXPECT_THAT(
      trouble(one_fault("kind=\"kill\"\ntarget=\"any\"\nat_step=1\nat_point=\"vote-complete\"")),
      HasSubstr("did you mean votes-complete?"));
  EXPECT_THAT(trouble(head + "[expect]\nunblock_p9 = \"1s\"\n"), HasSubstr("did you mean"));
  EXPECT_THAT(trouble("schema = 1\nname = \"x\"\n[run]\nconfig = \"a\"\n[clutter]\n"),
              HasSubstr("s.toml:5: clutter: there is no such key; did you mean cluster?"));
}

TEST(scenario_reader, tells_all_problems_at_once_in_the_order_of_the_file) {
  const std::string all = trouble("schema = 2\nname = \"x y\"\nseeed = 1\n[run]\nguard = 5\n");
  const std::vector<std::string> wanted = {
      "s.toml:1: schema: is 2", "s.toml:2: name: takes letters", "s.toml:3: seeed",
      "s.toml:4: run.config: is missing", "s.toml:5: run.guard: takes a duration"};
  std::size_t at = 0;
  for (const std::string& words : wanted) {
    const std::size_t found = all.find(words, at);
    ASSERT_NE(found, std::string::npos) << words << " in\n" << all;
    at = found;
  }
}

TEST(scenario_reader, refuses_a_fault_without_a_moment_or_with_two) {
  EXPECT_THAT(trouble(one_fault("kind = \"kill\"\ntarget = \"any\"")),
              HasSubstr("no moment is given"));
  EXPECT_THAT(trouble(one_fault("kind=\"kill\"\ntarget=\"any\"\nat_step=1\nrate=5")),
              HasSubstr("at_step gives its moment already"));
  EXPECT_THAT(trouble(one_fault("kind=\"kill\"\ntarget=\"any\"\nat_step=1\nplus=\"1s\"")),
              HasSubstr("only beside after"));
}

TEST(scenario_reader, refuses_what_a_kind_does_not_take) {
  EXPECT_THAT(trouble(one_fault("kind=\"kill\"\ntarget=\"any\"\nat_step=1\nlasts=\"1s\"")),
              HasSubstr("kill is done at once"));
  EXPECT_THAT(trouble(one_fault("kind=\"kill\"\ntarget=\"pair:m0-m1\"\nat_step=1")),
              HasSubstr("kill strikes members"));
  EXPECT_THAT(
      trouble(one_fault("kind=\"notice\"\ntarget=\"any\"\nat_step=1\nparams={signl=\"TERM\"}")),
      HasSubstr("params.signl: there is no such key; did you mean signal?"));
  EXPECT_THAT(
      trouble(one_fault("kind=\"notice\"\ntarget=\"any\"\nat_step=1\nparams={signal=\"KILL\"}")),
      HasSubstr("takes TERM"));
  EXPECT_THAT(trouble(one_fault("kind=\"kill\"\nat_step=1")), HasSubstr("target: is missing"));
  EXPECT_THAT(trouble(one_fault("kind=\"join\"\ntarget=\"m1\"\nat_step=1")),
              HasSubstr("leave it out"));
}

TEST(scenario_reader, refuses_limits_of_the_wrong_sort) {
  EXPECT_THAT(trouble(head + "[expect]\nunblock_p99 = 1\n"), HasSubstr("takes a duration"));
  EXPECT_THAT(trouble(head + "[expect]\ngoodput = 0.9\n"), HasSubstr("takes a range"));
  EXPECT_THAT(trouble(head + "[expect]\nmembers = 1.5\n"), HasSubstr("takes a whole number"));
  EXPECT_THAT(trouble(head + "[expect]\nplans = [4, 1]\n"), HasSubstr("its range is empty"));
}

TEST(scenario_reader, names_the_line_of_broken_toml) {
  EXPECT_THAT(trouble("schema = 1\nname = \n"), HasSubstr("s.toml:2: not valid TOML"));
}

TEST(scenario_reader, reads_from_a_file_and_says_which_is_missing) {
  memory_file_system disk;
  const result<scenario> none = load_scenario(disk, "none.toml");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.failure().code, exit_code::bad_config);
  EXPECT_THAT(none.failure().message, HasSubstr("none.toml"));
}

}  // namespace
}  // namespace troupe::actors::chaos
