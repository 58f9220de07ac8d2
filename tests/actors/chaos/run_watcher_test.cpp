#include "actors/chaos/run_watcher.hpp"

#include <gmock/gmock.h>

#include "actors/plan_text.hpp"
#include "config/base/memory_file.hpp"
#include "tests/actors/chaos/small_world.hpp"

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct watched {
  watched() { EXPECT_TRUE(make_directories(disk, "run/plans")); }
  void append(const std::string& name, const std::string& text) {
    auto f = disk.open("run/" + name, open_mode::append);
    ASSERT_TRUE(f);
    ASSERT_TRUE((*f)->append(std::as_bytes(std::span(text))));
  }
  void plan(std::uint32_t number, std::uint64_t base) {
    protocol::plan p = plan_of(3);
    p.number = generation(number);
    p.parent = number == 0 ? "" : std::string(32, 'a');
    p.base = base;
    p.verdict = "start";
    p.reason = "test";
    for (auto& m : p.members) {
      m.host = m.domain = "h";
      m.address = "127.0.0.1:1";
    }
    char name[32];
    std::snprintf(name, sizeof name, "plans/plan-%06u", number);
    append(name, print_plan(p));
  }
  static std::string step(std::uint64_t n) {
    return "{\"step\":" + std::to_string(n) +
           ",\"loss\":1.5,\"grad_norm\":1.0,\"lr\":0.5,\"tokens\":10,\"world\":3,"
           "\"generation\":0,\"skipped\":false,\"seconds\":0.1}\n";
  }
  // In short: c2 a commit, b3 a begin, e:name an event.
  std::string look(duration now = {}) {
    std::string all;
    for (const happening& h : watcher.look(now)) {
      if (const auto* e = std::get_if<step_committed>(&h)) all += "c" + std::to_string(e->step);
      if (const auto* e = std::get_if<step_begins>(&h)) all += "b" + std::to_string(e->step);
      if (const auto* e = std::get_if<event_seen>(&h)) all += "e:" + e->name;
      all += " ";
    }
    return all;
  }

  memory_file_system disk;
  run_watcher watcher{disk, "run"};
};

TEST(run_watcher, tells_plans_and_steps_in_their_order) {
  watched w;
  EXPECT_EQ(w.look(), "");
  EXPECT_FALSE(w.watcher.has_plan());
  w.plan(0, 0);
  EXPECT_EQ(w.look(), "b1 ");
  ASSERT_TRUE(w.watcher.has_plan());
  w.append("steps.jsonl", watched::step(1) + watched::step(2));
  EXPECT_EQ(w.look(), "c1 b2 c2 b3 ");
  EXPECT_EQ(w.look(), "");
  w.plan(1, 2);
  EXPECT_EQ(w.look(), "b3 ") << "the step in flight begins again";
}

TEST(run_watcher, waits_for_the_end_of_a_line_and_forgets_a_torn_one) {
  watched w;
  w.plan(0, 0);
  (void)w.look();
  const std::string line = watched::step(1);
  w.append("steps.jsonl", line.substr(0, 10));
  EXPECT_EQ(w.look(), "");
  w.append("steps.jsonl", line.substr(10));
  EXPECT_EQ(w.look(), "c1 b2 ");
  w.append("steps.jsonl", "{\"step\":2,\"lo");
  EXPECT_EQ(w.look(), "");
  auto f = w.disk.open("run/steps.jsonl", open_mode::update);
  ASSERT_TRUE(f);
  ASSERT_TRUE((*f)->truncate(line.size()));
  EXPECT_EQ(w.look(), "");
  w.append("steps.jsonl", watched::step(2));
  EXPECT_EQ(w.look(), "c2 b3 ");
}

TEST(run_watcher, tells_events_by_their_names_in_scenarios) {
  watched w;
  w.append("events.jsonl",
           "{\"event\":\"generation\",\"mono\":0.5}\n{\"event\":\"member_lost\",\"mono\":1.0}\n");
  EXPECT_EQ(w.look(), "e:plan-published e:member-lost ");
}

TEST(run_watcher, puts_events_of_each_writer_on_its_own_clock) {
  watched w;
  w.append("events.jsonl", "{\"event\":\"a\",\"mono\":0.010}\n");
  (void)w.look(1'050ms);  // 40 ms late
  w.append("events.jsonl", "{\"event\":\"b\",\"mono\":0.500}\n");
  (void)w.look(1'501ms);  // 1 ms late
  // Another member keeps the records from here on.
  w.append("events.jsonl", "{\"event\":\"c\",\"mono\":0.020}\n");
  (void)w.look(3'000ms);
  run_facts facts;
  w.watcher.finish(facts);
  ASSERT_EQ(facts.events.size(), 3u);
  EXPECT_EQ(facts.events[0].at, 1'011ms);
  EXPECT_EQ(facts.events[1].at, 1'501ms);
  EXPECT_EQ(facts.events[2].at, 3'000ms);
}

TEST(run_watcher, counts_new_copies_as_unfinished_until_steps_were_committed_with_them) {
  watched w;
  w.plan(0, 0);
  (void)w.look();
  world_view world;
  w.watcher.fill(world);
  EXPECT_THAT(world.unfinished, IsEmpty()) << "the first plan's holders have what they hold";
  protocol::plan p = plan_of(3);
  p.number = generation(1);
  p.parent = std::string(32, 'a');
  p.placement[0].backups = {member_id(2)};
  p.verdict = "start";
  p.reason = "test";
  for (auto& m : p.members) {
    m.host = m.domain = "h";
    m.address = "127.0.0.1:1";
  }
  w.append("plans/plan-000001", print_plan(p));
  (void)w.look();
  w.watcher.fill(world);
  EXPECT_THAT(world.unfinished, ElementsAre(testing::Pair(member_id(2), protocol::block_id{0, 0})));
  w.append("steps.jsonl", watched::step(1) + watched::step(2) + watched::step(3));
  (void)w.look();
  w.watcher.fill(world);
  EXPECT_THAT(world.unfinished, IsEmpty());
}

TEST(run_watcher, says_what_is_wrong_with_the_records) {
  watched w;
  w.append("steps.jsonl", watched::step(1) + watched::step(3));
  (void)w.look();
  run_facts facts;
  w.watcher.finish(facts);
  EXPECT_THAT(facts.records_trouble, HasSubstr("step 2 comes next"));
  EXPECT_NE(facts.chain_trouble, "") << "there is no run in this directory";
}

}  // namespace
}  // namespace troupe::actors::chaos
