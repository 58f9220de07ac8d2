#include "actors/chaos/schedule.hpp"

#include <gmock/gmock.h>

#include "actors/chaos/scenario_reader.hpp"
#include "tests/actors/chaos/small_world.hpp"

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A run that the test drives by hand: a step takes 100 ms of its time.
struct driven {
  driven(const std::string& text, std::uint32_t members = 4, std::uint64_t seed = 1)
      : world(world_of(members)), plan(read(text), run_mode::sim, seed) {}

  static scenario read(const std::string& text) {
    result<scenario> s = read_scenario(
        "schema = 1\nname = \"x\"\n[cluster]\nmembers = 4\nspares = 2\n[run]\nconfig = \"a\"\n" +
            text,
        "s.toml");
    EXPECT_TRUE(s) << (s ? "" : s.failure().message);
    return s ? *s : scenario();
  }

  orders tell(const happening& what) {
    orders o = plan.tell(what, now, world);
    for (const injection& i : o.begin) {
      began.push_back(i);
      log += "+" + i.which.fault;
      for (const member_id m : i.whom.members) log += "/m" + std::to_string(m.value);
      log += " ";
      if (prove) tell(fault_began{i.which});
    }
    for (const ending& e : o.end) log += "-" + e.which.fault + " ";
    for (const refusal& r : o.refused) refused.push_back(r);
    if (o.quiet_begins) log += "quiet ";
    return o;
  }
  void steps(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t s = from; s <= to; ++s) {
      log += std::to_string(s) + ": ";
      tell(step_begins{s});
      for (int i = 0; i < 10; ++i) {
        now += 10ms;
        tell(time_passed{});
      }
      tell(step_committed{s});
    }
  }

  world_view world;
  schedule plan;
  duration now{1h};  // its zero means nothing
  bool prove = true;
  std::vector<injection> began;
  std::vector<refusal> refused;
  std::string log;
};

std::string fault_text(const std::string& id, const std::string& kind, const std::string& more) {
  return "[[fault]]\nid = \"" + id + "\"\nkind = \"" + kind + "\"\n" + more + "\n";
}

TEST(schedule, strikes_when_the_named_step_begins_and_only_then) {
  driven d(fault_text("a", "kill", "target = \"m1\"\nat_step = 3"));
  d.steps(1, 5);
  EXPECT_EQ(d.log, "1: 2: 3: +a/m1 4: 5: ");
  ASSERT_THAT(d.began, SizeIs(1));
  EXPECT_EQ(d.began[0].step, 3u);
  EXPECT_EQ(d.began[0].why, "step 3 begins");
}

TEST(schedule, strikes_at_every_step_of_a_list_until_its_count) {
  driven all(fault_text("a", "nan", "target = \"m1\"\nat_step = [2, \"4..5\"]"));
  all.steps(1, 6);
  EXPECT_EQ(all.log, "1: 2: +a/m1 3: 4: +a/m1 5: +a/m1 6: ");
  driven two(fault_text("a", "nan", "target = \"m1\"\nat_step = [2, \"4..5\"]\ncount = 2"));
  two.steps(1, 6);
  EXPECT_EQ(two.log, "1: 2: +a/m1 3: 4: +a/m1 5: 6: ");
}

TEST(schedule, looks_its_target_up_when_it_strikes) {
  driven d(fault_text("a", "nan", "target = \"coordinator\"\nat_step = [2, 3]"));
  d.steps(1, 2);
  d.world = world_of(4, 3);
  d.steps(3, 3);
  EXPECT_EQ(d.log, "1: 2: +a/m0 3: +a/m3 ");
}

TEST(schedule, does_a_step_that_is_done_again_once_or_at_each_attempt) {
  const std::string kill = "target = \"m1\"\nat_step = 2\ncount = 5\nagain = ";
  driven once(fault_text("a", "nan", kill + "\"once\""));
  once.steps(1, 2);
  once.steps(2, 3);
  EXPECT_EQ(once.log, "1: 2: +a/m1 2: 3: ");
  driven each(fault_text("a", "nan", kill + "\"each-attempt\""));
  each.steps(1, 2);
  each.steps(2, 3);
  EXPECT_EQ(each.log, "1: 2: +a/m1 2: +a/m1 3: ");
}

TEST(schedule, strikes_at_a_named_point_with_its_count_and_knows_the_receiver) {
  driven d(fault_text("head", "kill",
                      "target = \"coordinator\"\nat_step = 2\nat_point = \"commit-sent:2\"") +
           fault_text("witness", "stop",
                      "target = \"receiver:head\"\nafter = \"head\"\nplus = \"50ms\""));
  d.steps(1, 1);
  d.tell(step_begins{2});
  d.tell(point_reached{{"commit-sent", 1}, 2, member_id(0), member_id(1)});
  EXPECT_THAT(d.began, IsEmpty());
  d.tell(point_reached{{"commit-sent", 2}, 2, member_id(0), member_id(2)});
  ASSERT_THAT(d.began, SizeIs(1));
  EXPECT_EQ(d.began[0].why, "m0 is at commit-sent:2 of step 2");
  d.now += 49ms;
  d.tell(time_passed{});
  EXPECT_THAT(d.began, SizeIs(1));
  d.now += 1ms;
  d.tell(time_passed{});
  ASSERT_THAT(d.began, SizeIs(2));
  EXPECT_THAT(d.began[1].whom.members, ElementsAre(member_id(2)));
}

TEST(schedule, waits_for_the_struck_member_to_reach_a_point_of_its_own) {
  driven d(fault_text("a", "kill", "target = \"m2\"\nat_step = 1\nat_point = \"voted\""));
  d.tell(step_begins{1});
  d.tell(point_reached{{"voted", {}}, 1, member_id(1)});
  EXPECT_THAT(d.began, IsEmpty());
  d.tell(point_reached{{"voted", {}}, 1, member_id(2)});
  ASSERT_THAT(d.began, SizeIs(1));
}

TEST(schedule, takes_whoever_is_at_the_point_where_any_will_do) {
  driven d(fault_text("a", "kill", "target = \"any\"\nat_step = 1\nat_point = \"voted\""));
  d.tell(step_begins{1});
  d.tell(point_reached{{"voted", {}}, 1, member_id(3)});
  ASSERT_THAT(d.began, SizeIs(1));
  EXPECT_THAT(d.began[0].whom.members, ElementsAre(member_id(3)));
}

TEST(schedule, counts_time_from_the_first_commit) {
  driven d(fault_text("a", "kill", "target = \"m1\"\nat_time = \"250ms\""));
  d.now += 10s;  // a slow start
  d.steps(1, 5);
  EXPECT_EQ(d.log, "1: 2: 3: 4: +a/m1 5: ");
}

TEST(schedule, chains_after_a_fault_only_once_that_is_proven) {
  const std::string both = fault_text("a", "kill", "target = \"m1\"\nat_step = 2") +
                           fault_text("b", "kill", "target = \"m3\"\nafter = \"a\"\nplus = 2");
  driven d(both);
  d.steps(1, 6);
  EXPECT_EQ(d.log, "1: 2: +a/m1 3: 4: +b/m3 5: 6: ");
  driven unproven(both);
  unproven.prove = false;
  unproven.steps(1, 6);
  EXPECT_EQ(unproven.log, "1: 2: +a/m1 3: 4: 5: 6: ");
}

TEST(schedule, a_fault_that_did_not_happen_does_not_count) {
  driven d(fault_text("a", "kill", "target = \"m1\"\nat_step = [2, 4]\ncount = 1"));
  d.prove = false;
  d.steps(1, 2);
  ASSERT_THAT(d.began, SizeIs(1));
  d.tell(fault_failed{d.began[0].which});
  EXPECT_EQ(d.plan.injected("a"), 0u);
  d.steps(3, 4);
  EXPECT_THAT(d.began, SizeIs(2));
  EXPECT_EQ(d.plan.injected("a"), 1u);
}

TEST(schedule, answers_an_event) {
  driven d(fault_text("a", "kill", "target = \"m1\"\non = \"plan-published\""));
  d.steps(1, 1);
  d.tell(event_seen{"recovered"});
  EXPECT_THAT(d.began, IsEmpty());
  d.tell(event_seen{"plan-published"});
  d.tell(event_seen{"plan-published"});
  ASSERT_THAT(d.began, SizeIs(1));
  EXPECT_EQ(d.began[0].why, "after plan-published");
}

TEST(schedule, comes_again_by_the_clock_and_by_steps_within_its_jitter) {
  driven clock(fault_text("a", "nan", "target = \"m1\"\nevery = \"300ms\"\njitter = \"100ms\""));
  std::vector<duration> times;
  clock.tell(step_committed{1});
  for (int i = 0; i < 10000; ++i) {
    clock.now += 1ms;
    if (!clock.tell(time_passed{}).begin.empty()) times.push_back(clock.now);
  }
  ASSERT_GE(times.size(), 25u);
  std::set<duration> gaps;
  for (std::size_t i = 1; i < times.size(); ++i) {
    gaps.insert(times[i] - times[i - 1]);
    EXPECT_GE(times[i] - times[i - 1], 199ms);
    EXPECT_LE(times[i] - times[i - 1], 401ms);
  }
  EXPECT_GT(gaps.size(), 10u);
  driven steps(fault_text("a", "nan", "target = \"m1\"\nevery = 3"));
  steps.steps(1, 9);
  EXPECT_EQ(steps.log, "1: 2: 3: 4: +a/m1 5: 6: 7: +a/m1 8: 9: ");
}

TEST(schedule, comes_at_its_rate_on_average) {
  driven d(fault_text("a", "nan", "target = \"m1\"\nrate = 3600"));
  d.tell(step_committed{1});
  for (int i = 0; i < 1000 * 100; ++i) {
    d.now += 10ms;
    d.tell(time_passed{});
  }
  EXPECT_NEAR(static_cast<double>(d.began.size()), 1000, 100) << "one a second for 1000 s";
}

TEST(schedule, throws_its_coin_for_each_occasion) {
  driven d(fault_text("a", "nan", "target = \"m1\"\nat_step = \"1..1000\"\nchance = 0.2"));
  for (std::uint64_t s = 1; s <= 1000; ++s) d.tell(step_begins{s});
  EXPECT_NEAR(static_cast<double>(d.began.size()), 200, 40);
}

TEST(schedule, ends_what_lasts_by_time_by_steps_and_at_quiet) {
  driven d(fault_text("t", "stop", "target = \"m1\"\nat_step = 2\nlasts = \"150ms\"") +
           fault_text("s", "cpu-steal", "target = \"m2\"\nat_step = 2\nlasts = 3") +
           fault_text("q", "cpu-steal", "target = \"m3\"\nat_step = 2") + "[quiet]\nat_step = 7\n");
  d.steps(1, 8);
  EXPECT_EQ(d.log, "1: 2: +t/m1 +s/m2 +q/m3 3: -t 4: 5: -s 6: 7: -q quiet 8: ");
  EXPECT_THAT(d.plan.open(), IsEmpty());
}

TEST(schedule, injects_nothing_once_it_is_quiet) {
  driven d(fault_text("a", "nan", "target = \"m1\"\nevery = 1") + "[quiet]\nat_step = 3\n");
  d.steps(1, 6);
  EXPECT_EQ(d.log, "1: 2: +a/m1 3: quiet 4: 5: 6: ");
  driven timed(fault_text("a", "nan", "target = \"m1\"\nevery = 1") +
               "[quiet]\nat_time = \"150ms\"\n");
  timed.steps(1, 6);
  EXPECT_EQ(timed.log, "1: 2: +a/m1 3: +a/m1 quiet 4: 5: 6: ");
}

TEST(schedule, heals_only_the_core_when_it_names_one) {
  driven d(fault_text("in", "cpu-steal", "target = \"m1\"\nat_step = 2") +
           fault_text("out", "cpu-steal", "target = \"m3\"\nat_step = 2") +
           "[quiet]\nat_step = 4\ncore = [\"m0\", \"m1\"]\n");
  d.steps(1, 5);
  EXPECT_EQ(d.log, "1: 2: +in/m1 +out/m3 3: 4: -in quiet 5: ");
  EXPECT_THAT(d.plan.open(), ElementsAre(occurrence{"out", 1}));
}

TEST(schedule, stays_inside_the_promise_and_says_what_it_refused) {
  driven d(fault_text("a", "stop", "target = \"m1\"\nat_step = 2") +
           fault_text("b", "kill", "target = \"m2\"\nat_step = 3"));
  d.steps(1, 3);
  EXPECT_EQ(d.log, "1: 2: +a/m1 3: ") << "m1 and m2 hold block 1";
  ASSERT_THAT(d.refused, SizeIs(1));
  EXPECT_EQ(d.refused[0].fault, "b");
  EXPECT_THAT(d.refused[0].why, HasSubstr("kill: block 1 (layer 1, block 0)"));
  driven outside(fault_text("a", "stop", "target = \"m1\"\nat_step = 2") +
                 fault_text("b", "kill", "target = \"m2\"\nat_step = 3") +
                 "[limits]\ninside_promise = false\n");
  outside.steps(1, 3);
  EXPECT_EQ(outside.log, "1: 2: +a/m1 3: +b/m2 ");
}

TEST(schedule, does_not_count_on_a_member_that_it_has_just_ended) {
  driven d(fault_text("a", "kill", "target = \"m1\"\nat_step = 2") +
           fault_text("b", "kill", "target = \"m2\"\nat_step = 2") +
           fault_text("c", "kill", "target = \"m1\"\nat_step = 3"));
  d.steps(1, 3);  // the world still shows m1 alive
  EXPECT_EQ(d.log, "1: 2: +a/m1 3: ");
  ASSERT_THAT(d.refused, SizeIs(2));
  EXPECT_THAT(d.refused[0].why, HasSubstr("would be without a holder"));
  EXPECT_THAT(d.refused[1].why, HasSubstr("m1 is not alive"));
  driven again(fault_text("a", "kill", "target = \"m1\"\nat_step = [2, 3]"));
  again.steps(1, 2);
  again.world.plan.members[1].life = incarnation(999);  // its next life
  again.steps(3, 3);
  EXPECT_EQ(again.log, "1: 2: +a/m1 3: +a/m1 ");
}

TEST(schedule, chooses_among_those_who_may_be_struck) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    driven d(fault_text("a", "kill", "target = \"any\"\nat_step = 2"), 4, seed);
    d.world.alive.erase(member_id(1));  // so that m0 and m2 hold the only copies
    d.steps(1, 2);
    ASSERT_THAT(d.began, SizeIs(1)) << seed;
    EXPECT_THAT(d.began[0].whom.members, ElementsAre(member_id(3))) << seed;
  }
}

TEST(schedule, says_when_nobody_is_there_to_be_struck) {
  driven d(fault_text("a", "kill", "target = \"joiner\"\nat_step = 2"));
  d.steps(1, 2);
  ASSERT_THAT(d.refused, SizeIs(1));
  EXPECT_THAT(d.refused[0].why, HasSubstr("nobody has joined yet"));
}

TEST(schedule, lets_join_no_more_than_there_are_spares) {
  driven d(fault_text("a", "join", "at_step = \"1..3\""));
  d.steps(1, 3);
  EXPECT_THAT(d.began, SizeIs(2));
  ASSERT_THAT(d.refused, SizeIs(1));
  EXPECT_THAT(d.refused[0].why, HasSubstr("no spare is left"));
}

TEST(schedule, draws_the_same_for_a_seed_and_another_fault_does_not_move_it) {
  const std::string a =
      fault_text("a", "nan", "target = \"any\"\nat_step = \"1..50\"\nchance = 0.5");
  const std::string b =
      fault_text("b", "nan", "target = \"any\"\nat_step = \"1..50\"\nchance = 0.5");
  const auto struck = [](const std::string& text, std::uint64_t seed) {
    driven d(text, 4, seed);
    d.steps(1, 50);
    std::string all;
    for (const injection& i : d.began) {
      if (i.which.fault == "a") {
        all += std::to_string(i.step) + "m" + std::to_string(i.whom.members[0].value) + " ";
      }
    }
    return all;
  };
  EXPECT_EQ(struck(a, 1), struck(a, 1));
  EXPECT_EQ(struck(a, 1), struck(b + a, 1));
  EXPECT_NE(struck(a, 1), struck(a, 2));
}

const std::string soup =
    "[random]\nfrom_step = 5\nto_step = 80\nrate = 7200\nmin_gap = \"400ms\"\nmax_open = 1\n"
    "kinds = { nan = 1, cpu-steal = 2, join = 1 }\nspare_roles = [\"coordinator\"]\n";

TEST(schedule, a_random_table_keeps_to_its_steps_gaps_kinds_and_roles) {
  std::set<fault_kind> kinds;
  std::size_t all = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    driven d(soup, 4, seed);
    std::vector<duration> times;
    for (std::uint64_t s = 1; s <= 100; ++s) {
      d.tell(step_begins{s});
      for (int i = 0; i < 10; ++i) {
        d.now += 10ms;
        if (!d.tell(time_passed{}).begin.empty()) times.push_back(d.now);
      }
      d.tell(step_committed{s});
      EXPECT_LE(d.plan.open().size(), 1u);
    }
    for (std::size_t i = 1; i < times.size(); ++i) EXPECT_GE(times[i] - times[i - 1], 400ms);
    for (const injection& i : d.began) {
      kinds.insert(i.kind);
      EXPECT_GE(i.step, 5u);
      EXPECT_LE(i.step, 80u);
      for (const member_id m : i.whom.members) EXPECT_NE(m, member_id(0)) << "the coordinator";
      EXPECT_FALSE(i.must_happen);
    }
    all += d.began.size();
  }
  EXPECT_THAT(kinds, ElementsAre(fault_kind::join, fault_kind::cpu_steal, fault_kind::nan));
  EXPECT_GT(all, 40u);
}

TEST(schedule, the_same_seed_makes_the_same_soup) {
  const auto log = [](std::uint64_t seed) {
    driven d(soup, 4, seed);
    d.steps(1, 100);
    return d.log;
  };
  EXPECT_EQ(log(3), log(3));
  EXPECT_NE(log(3), log(4));
}

TEST(schedule, knows_when_it_wants_to_be_told_of_the_time) {
  driven d(fault_text("a", "stop", "target = \"m1\"\nat_time = \"1s\"\nlasts = \"2s\""));
  EXPECT_EQ(d.plan.next_due(), std::nullopt) << "nothing is committed yet";
  d.tell(step_committed{1});
  EXPECT_EQ(d.plan.next_due(), d.now + 1s);
  d.now += 1s;
  d.tell(time_passed{});
  EXPECT_EQ(d.plan.next_due(), d.now + 2s) << "its end";
  d.tell(fault_over{d.began.at(0).which});
  EXPECT_EQ(d.plan.next_due(), std::nullopt);
}

// --- what is given to workers ahead ---

struct driven_ahead : driven {
  explicit driven_ahead(const std::string& text) : driven(text) {
    plan = schedule(read(text), run_mode::process, 1);
  }
  void strike(const std::string& fault, std::uint64_t number, std::uint32_t who, std::uint64_t step,
              const std::string& point) {
    happening h = armed_struck{};
    auto& s = std::get<armed_struck>(h);
    s.which.fault = fault;
    s.which.number = number;
    s.who = member_id(who);
    s.step = step;
    s.point = point;
    tell(h);
  }
  std::string armed() {
    std::string all;
    for (const armed_fault& a : plan.to_arm(world)) {
      all += a.which.fault + "." + std::to_string(a.which.number);
      for (const member_id m : a.whom.members) all += "/m" + std::to_string(m.value);
      for (const step_range& r : a.steps) {
        all += " " + std::to_string(r.first) + ".." + std::to_string(r.last);
      }
      all += " ";
    }
    return all;
  }
};

TEST(schedule_ahead, a_point_that_only_a_worker_sees_is_armed_and_not_ordered) {
  driven_ahead d(fault_text("a", "kill", "target = \"m2\"\nat_step = 3\nat_point = \"voted\""));
  EXPECT_EQ(d.armed(), "a.1/m2 3..3 ");
  d.steps(1, 2);
  EXPECT_EQ(d.armed(), "a.1/m2 3..3 ");
  d.steps(3, 4);
  EXPECT_EQ(d.log, "1: 2: 3: 4: ");
}

TEST(schedule_ahead, a_kill_as_a_step_begins_is_ordered_and_a_gradient_is_spoilt_exactly_there) {
  driven_ahead d(fault_text("a", "kill", "target = \"m2\"\nat_step = 3") +
                 fault_text("b", "nan", "target = \"m1\"\nat_step = 3"));
  EXPECT_EQ(d.armed(), "b.1/m1 3..3 ");
  d.steps(1, 3);
  EXPECT_EQ(d.log, "1: 2: 3: +a/m2 ");
}

TEST(schedule_ahead, what_has_struck_is_counted_and_taken_out) {
  driven_ahead d(fault_text("a", "kill", "target = \"m2\"\nat_step = 3\nat_point = \"voted\"") +
                 fault_text("b", "stop", "target = \"m0\"\nafter = \"a\"\nlasts = \"1s\""));
  d.steps(1, 3);
  d.strike("a", 1, 2, 3, "voted");
  EXPECT_EQ(d.armed(), "");
  EXPECT_EQ(d.log, "1: 2: 3: +a/m2 +b/m0 ");
  EXPECT_TRUE(d.began[0].struck);
  EXPECT_EQ(d.began[0].why, "m2 is at voted of step 3");
  EXPECT_EQ(d.plan.injected("a"), 1U);
  d.strike("a", 1, 2, 3, "voted");
  EXPECT_EQ(d.plan.injected("a"), 1U) << "told twice";
}

TEST(schedule_ahead, of_a_range_the_steps_that_are_left_stay_armed) {
  driven_ahead d(fault_text("a", "hang", "target = \"m2\"\nat_step = \"3..5\"\nlasts = \"10ms\""));
  EXPECT_EQ(d.armed(), "a.1/m2 3..5 ");
  d.strike("a", 1, 2, 3, "step-begin");
  EXPECT_EQ(d.armed(), "a.2/m2 4..5 ");
  d.steps(1, 6);
  EXPECT_EQ(d.armed(), "");
}

TEST(schedule_ahead, a_target_is_who_it_is_in_the_present_plan) {
  driven_ahead d(
      fault_text("a", "kill", "target = \"coordinator\"\nat_step = 3\nat_point = \"voted\""));
  EXPECT_EQ(d.armed(), "a.1/m0 3..3 ");
  d.world.plan.coordinator = member_id(1);
  EXPECT_EQ(d.armed(), "a.1/m1 3..3 ");
  d.world.alive = {member_id(1)};
  EXPECT_EQ(d.armed(), "") << "outside of the promise";
}

TEST(schedule_ahead, nothing_is_armed_when_it_is_quiet) {
  driven_ahead d(fault_text("a", "kill", "target = \"m2\"\nat_step = 3\nat_point = \"voted\"") +
                 "[quiet]\nat_step = 5\n");
  d.tell(step_begins{5});
  EXPECT_EQ(d.armed(), "");
}

}  // namespace
}  // namespace troupe::actors::chaos
