// Who has published which plan, on file systems that lie, forget or are full.
#include "actors/plan_chain.hpp"

#include <gmock/gmock.h>

#include <functional>

#include "actors/plan_text.hpp"
#include "config/base/faulty_file.hpp"
#include "config/base/memory_file.hpp"
#include "tests/actors/protocol/random_world.hpp"
#include "tests/support/forwarding_file_system.hpp"

namespace troupe::actors {
namespace {

using protocol::make_plan;
using protocol::plan;
using protocol::planner_input;
using testing::HasSubstr;

using enum plan_chain::outcome;

plan next_plan(const plan_chain& chain, const std::string& reason,
               const std::string& verdict = "start") {
  planner_input in = protocol::equal_world(3, 8, 2, 4, 1);
  in.run_id = "r1";
  in.number = chain.next_number();
  in.parent = chain.head_hash();
  in.reason = reason;
  in.verdict = verdict;
  return make_plan(in);
}

class plan_chain_test : public testing::Test {
 protected:
  plan_chain_test() { EXPECT_TRUE(make_directories(memory, "/run")); }

  plan_chain open(file_system& files) {
    auto chain = plan_chain::open(files, "/run", "r1");
    EXPECT_TRUE(chain) << chain.failure().message;
    return *chain;
  }
  plan_chain open() { return open(memory); }
  void publish_three() {
    plan_chain chain = open();
    for (const char* reason : {"first", "second", "third"}) {
      ASSERT_EQ(*chain.publish(next_plan(chain, reason)), mine);
    }
  }
  std::string read(const std::string& path) { return *read_file(memory, path, 1 << 20); }
  error refused() {
    const auto chain = plan_chain::open(memory, "/run", "r1");
    EXPECT_FALSE(chain);
    if (chain) return {};
    EXPECT_EQ(chain.failure().code, exit_code::cannot_use);
    return chain.failure();
  }

  memory_file_system memory;
};

TEST_F(plan_chain_test, begins_empty_and_grows_plan_by_plan) {
  plan_chain chain = open();
  EXPECT_FALSE(chain.head());
  EXPECT_EQ(chain.next_number(), generation(0));
  EXPECT_EQ(chain.head_hash(), "");
  const plan first = next_plan(chain, "first");
  EXPECT_EQ(*chain.publish(first), mine);
  EXPECT_EQ(chain.head()->plan, first);
  EXPECT_EQ(chain.head_hash(), plan_hash(read("/run/plans/plan-000000")));
  EXPECT_EQ(*chain.publish(next_plan(chain, "second")), mine);
  EXPECT_EQ(chain.head()->plan.parent, plan_hash(read("/run/plans/plan-000000")));
  EXPECT_EQ(chain.path_of(generation(1)), "/run/plans/plan-000001");
}

TEST_F(plan_chain_test, is_found_again_and_goes_on_counting_at_a_resume) {
  publish_three();
  plan_chain chain = open();
  EXPECT_EQ(chain.next_number(), generation(3));
  EXPECT_EQ(*chain.publish(next_plan(chain, "resumed")), mine);
  const auto all = read_plans(memory, "/run", "r1");
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 4u);
  EXPECT_EQ((*all)[0].plan.reason, "first");
  EXPECT_EQ((*all)[3].plan.verdict, "start");
  EXPECT_EQ((*all)[3].hash, chain.head_hash());
}

TEST_F(plan_chain_test, of_two_who_publish_the_same_number_one_wins_and_both_know) {
  plan_chain a = open(), b = open();
  const plan from_a = next_plan(a, "a"), from_b = next_plan(b, "b");
  EXPECT_EQ(*a.publish(from_a), mine);
  EXPECT_EQ(*b.publish(from_b), lost);
  EXPECT_EQ(b.head()->plan, from_a);
  EXPECT_EQ(a.head_hash(), b.head_hash());
  EXPECT_EQ(*b.publish(next_plan(b, "b again")), mine);
  EXPECT_TRUE(*a.refresh());
  EXPECT_EQ(a.head()->plan.reason, "b again");
  EXPECT_FALSE(*a.refresh());
}

// Runs something just before or after each operation on the way to a published plan.
class meddling : public forwarding_file_system {
 public:
  using forwarding_file_system::forwarding_file_system;
  std::function<void()> before_link, after_link;
  result<bool> link(const std::string& from, const std::string& to) override {
    if (before_link) std::exchange(before_link, {})();
    result<bool> linked = forwarding_file_system::link(from, to);
    if (after_link) std::exchange(after_link, {})();
    return linked;
  }
};

TEST_F(plan_chain_test, a_rival_at_the_last_moment_wins_or_loses_wholly) {
  for (const bool before : {true, false}) {
    memory_file_system disk;
    ASSERT_TRUE(make_directories(disk, "/run"));
    meddling files(disk);
    plan_chain me = open(files), rival = open(disk);
    const auto race = [&] {
      EXPECT_EQ(*rival.publish(next_plan(rival, "rival")), before ? mine : lost);
    };
    (before ? files.before_link : files.after_link) = race;
    EXPECT_EQ(*me.publish(next_plan(me, "me")), before ? lost : mine);
    EXPECT_EQ(me.head()->plan.reason, before ? "rival" : "me");
    EXPECT_EQ(me.head_hash(), rival.head_hash());
  }
}

// The link is made and the answer is an error, or says that the name was taken; or the link is not
// made and the answer says it was.
class lying : public forwarding_file_system {
 public:
  using forwarding_file_system::forwarding_file_system;
  enum class lie { none, failed_but_made, taken_but_made, made_but_not } next = lie::none;
  result<bool> link(const std::string& from, const std::string& to) override {
    switch (std::exchange(next, lie::none)) {
      case lie::failed_but_made:
        (void)forwarding_file_system::link(from, to);
        return error{exit_code::io, "reply lost"};
      case lie::taken_but_made:
        (void)forwarding_file_system::link(from, to);
        return false;
      case lie::made_but_not:
        return true;
      case lie::none:
        break;
    }
    return forwarding_file_system::link(from, to);
  }
};

TEST_F(plan_chain_test, a_lost_reply_does_not_lose_the_plan) {
  for (const auto lie : {lying::lie::failed_but_made, lying::lie::taken_but_made}) {
    memory_file_system disk;
    ASSERT_TRUE(make_directories(disk, "/run"));
    lying files(disk);
    plan_chain chain = open(files);
    files.next = lie;
    EXPECT_EQ(*chain.publish(next_plan(chain, "me")), mine);
    disk.power_loss(0);  // it is durable although publish() never got to that
    const auto all = read_plans(disk, "/run", "r1");
    ASSERT_TRUE(all) << all.failure().message;
    ASSERT_EQ(all->size(), 1u);
  }
}

TEST_F(plan_chain_test, a_plan_that_was_published_but_is_not_there_is_an_error) {
  lying files(memory);
  plan_chain chain = open(files);
  files.next = lying::lie::made_but_not;
  const auto said = chain.publish(next_plan(chain, "me"));
  ASSERT_FALSE(said);
  EXPECT_THAT(said.failure().message, HasSubstr("/run/plans/plan-000000 was published but"));
  EXPECT_FALSE(chain.head());
}

TEST_F(plan_chain_test, a_plan_of_a_dead_rival_is_made_durable_before_it_is_obeyed) {
  faulty_file_system dying(memory);
  {
    plan_chain rival = open(dying);
    dying.inject({.operation = file_operation::link, .kind = fault_kind::crash_half_way});
    EXPECT_FALSE(rival.publish(next_plan(rival, "rival")));
  }
  plan_chain me = open();
  ASSERT_TRUE(me.head());
  EXPECT_EQ(me.head()->plan.reason, "rival");
  memory.power_loss(0);
  EXPECT_EQ(open().head()->plan.reason, "rival");
}

TEST_F(plan_chain_test, an_error_on_the_way_leaves_a_plan_or_none_and_may_be_tried_again) {
  std::size_t operations = 0;
  {
    memory_file_system disk;
    ASSERT_TRUE(make_directories(disk, "/run"));
    faulty_file_system files(disk);
    plan_chain chain = open(files);
    const std::size_t before = files.operations().size();
    ASSERT_EQ(*chain.publish(next_plan(chain, "me")), mine);
    operations = files.operations().size() - before;
  }
  ASSERT_GE(operations, 8u);
  for (std::size_t at = 1; at <= operations; ++at) {
    for (const fault_kind kind : {fault_kind::fail, fault_kind::fail_half_way}) {
      memory_file_system disk;
      ASSERT_TRUE(make_directories(disk, "/run"));
      faulty_file_system files(disk);
      plan_chain chain = open(files);
      const plan next = next_plan(chain, "me");
      files.inject({.at = at, .kind = kind});
      const auto first = chain.publish(next);
      const auto standing = read_plans(disk, "/run", "r1");
      ASSERT_TRUE(standing);
      if (first) {
        EXPECT_EQ(*first, mine) << at;
        EXPECT_EQ(standing->size(), 1u) << at;
      } else {
        EXPECT_FALSE(chain.head()) << at;
        EXPECT_EQ(*chain.publish(next), mine) << at;
      }
      EXPECT_EQ(chain.head()->plan, next) << at;
    }
  }
}

TEST_F(plan_chain_test, a_crash_leaves_a_whole_plan_or_none_also_without_power) {
  for (std::size_t at = 1; at <= 14; ++at) {
    for (const fault_kind kind : {fault_kind::crash, fault_kind::crash_half_way}) {
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        memory_file_system disk;
        ASSERT_TRUE(make_directories(disk, "/run"));
        faulty_file_system files(disk);
        plan_chain chain = open(files);
        ASSERT_EQ(*chain.publish(next_plan(chain, "old")), mine);
        const plan next = next_plan(chain, "new");
        files.inject({.at = at, .kind = kind});
        const auto said = chain.publish(next);
        disk.power_loss(seed);
        const auto all = read_plans(disk, "/run", "r1");
        ASSERT_TRUE(all) << at << ": " << all.failure().message;
        ASSERT_GE(all->size(), said ? 2u : 1u) << at;
        EXPECT_EQ(all->front().plan.reason, "old");
      }
    }
  }
}

TEST_F(plan_chain_test, a_full_disk_takes_a_plan_from_the_room_that_was_kept) {
  plan_chain chain = open();
  memory.set_capacity(memory.used_bytes());
  EXPECT_EQ(*chain.publish(next_plan(chain, "in need")), mine);
  memory.set_capacity(memory.used_bytes());
  const auto second = chain.publish(next_plan(chain, "too much"));  // the room is used up
  ASSERT_FALSE(second);
  EXPECT_THAT(second.failure().message, HasSubstr("free some space"));
  EXPECT_EQ(chain.next_number(), generation(1));
  memory.set_capacity(1 << 30);
  EXPECT_EQ(*chain.publish(next_plan(chain, "again")), mine);
  EXPECT_EQ(*chain.publish(next_plan(chain, "and again")), mine);
}

TEST_F(plan_chain_test, a_chain_can_be_opened_on_a_full_disk) {
  memory.set_capacity(0);
  EXPECT_FALSE(open().head());
}

TEST_F(plan_chain_test, left_over_temporary_files_do_not_count) {
  publish_three();
  const std::string torn = "/run/plans/plan-000003" + std::string(temporary_mark) + "1-2";
  ASSERT_TRUE((*memory.open(torn, open_mode::create))->write_at(0, {}));
  ASSERT_TRUE(memory.open("/run/plans/plan-000009~", open_mode::create));
  ASSERT_TRUE(memory.open("/run/plans/notes", open_mode::create));
  EXPECT_EQ(open().next_number(), generation(3));
}

TEST_F(plan_chain_test, a_missing_plan_is_named) {
  publish_three();
  ASSERT_TRUE(memory.remove("/run/plans/plan-000001"));
  EXPECT_THAT(refused().message, HasSubstr("/run/plans/plan-000001 is missing"));
}

TEST_F(plan_chain_test, a_changed_plan_is_named) {
  publish_three();
  const std::string text = read("/run/plans/plan-000001");
  std::string changed = text;
  changed.replace(changed.find("second"), 6, "sekond");
  ASSERT_TRUE(replace(memory, "/run/plans/plan-000001", changed));
  EXPECT_THAT(refused().message, HasSubstr("/run/plans/plan-000002 follows a plan with hash"));
  ASSERT_TRUE(replace(memory, "/run/plans/plan-000001", text.substr(0, 100)));
  EXPECT_THAT(refused().message, HasSubstr("/run/plans/plan-000001"));
  ASSERT_TRUE(replace(memory, "/run/plans/plan-000001", read("/run/plans/plan-000002")));
  EXPECT_THAT(refused().message, HasSubstr("/run/plans/plan-000001 holds plan 2"));
}

TEST_F(plan_chain_test, another_runs_plan_is_refused_with_both_names) {
  publish_three();
  const auto chain = plan_chain::open(memory, "/run", "r2");
  ASSERT_FALSE(chain);
  EXPECT_EQ(chain.failure().code, exit_code::cannot_use);
  EXPECT_THAT(chain.failure().message, HasSubstr("run r1"));
  EXPECT_THAT(chain.failure().message, HasSubstr("run r2"));
}

TEST_F(plan_chain_test, the_head_does_not_move_on_what_may_be_gone_again) {
  faulty_file_system files(memory);
  plan_chain reader = open(files);
  publish_three();
  files.inject({.operation = file_operation::sync_directory});
  EXPECT_FALSE(reader.refresh());
  EXPECT_FALSE(reader.head());
  EXPECT_TRUE(*reader.refresh());
  EXPECT_EQ(reader.head()->plan.reason, "third");
}

// Shows names in listings only when told to, as clients of network file systems do.
class late_listing : public forwarding_file_system {
 public:
  using forwarding_file_system::forwarding_file_system;
  result<std::vector<directory_entry>> list(const std::string&) override {
    return std::vector<directory_entry>();
  }
};

TEST_F(plan_chain_test, plans_are_found_by_name_where_listings_are_late) {
  publish_three();
  late_listing files(memory);
  EXPECT_EQ(open(files).next_number(), generation(3));
}

start_claim by(const std::string& identity) {
  start_claim c;
  c.identity = identity;
  c.name = "worker-0";
  c.host = "a";
  c.address = "127.0.0.1:9";
  return c;
}

TEST_F(plan_chain_test, who_claims_the_start_gathers_the_members) {
  plan_chain a = open(), b = open();
  EXPECT_FALSE(*a.present_claim());
  const auto first = a.claim(by("a"));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->identity, "a");
  EXPECT_EQ(first->number, 0u);
  EXPECT_TRUE(*memory.exists("/run/plans/claim-0000"));
  EXPECT_EQ(**b.present_claim(), *first);
  EXPECT_EQ(b.claim(by("b"))->number, 1u);  // the first one was silent
  EXPECT_EQ((*a.present_claim())->identity, "b");
}

TEST_F(plan_chain_test, of_two_claims_one_stands) {
  memory_file_system disk;
  ASSERT_TRUE(make_directories(disk, "/run"));
  meddling files(disk);
  plan_chain me = open(files), rival = open(disk);
  files.before_link = [&] { EXPECT_EQ(rival.claim(by("rival"))->identity, "rival"); };
  EXPECT_EQ(me.claim(by("me"))->identity, "rival");
}

TEST_F(plan_chain_test, claims_of_an_earlier_start_are_over) {
  plan_chain chain = open();
  ASSERT_TRUE(chain.claim(by("old")));
  ASSERT_EQ(*chain.publish(next_plan(chain, "start")), mine);
  plan_chain later = open();
  EXPECT_FALSE(*later.present_claim());
  const auto again = later.claim(by("new"));
  EXPECT_EQ(again->number, 1u);
  EXPECT_EQ(again->before, generation(1));
  EXPECT_EQ(again->identity, "new");
  late_listing files(memory);
  plan_chain third = open(files);
  EXPECT_EQ(third.claim(by("third"))->identity, "new");  // passed claim 0, met claim 1
}

TEST_F(plan_chain_test, a_damaged_claim_is_named) {
  plan_chain chain = open();
  ASSERT_TRUE(chain.claim(by("a")));
  ASSERT_TRUE(replace(memory, "/run/plans/claim-0000", "{}"));
  const auto present = chain.present_claim();
  ASSERT_FALSE(present);
  EXPECT_THAT(present.failure().message, HasSubstr("/run/plans/claim-0000"));
}

TEST_F(plan_chain_test, a_plan_that_does_not_follow_the_head_is_our_mistake) {
  publish_three();
  plan_chain chain = open();
  plan stale = next_plan(chain, "stale");
  stale.number = generation(1);
  EXPECT_DEATH((void)chain.publish(stale), "does not follow");
}

}  // namespace
}  // namespace troupe::actors
