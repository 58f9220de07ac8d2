// The invariants of changing worlds, each broken by somebody who is found by it. What the actors
// and state machines refuse before it happens is told to the checker directly.
#include <gmock/gmock.h>

#include "actors/plan_text.hpp"
#include "actors/sim/invariants.hpp"
#include "tests/actors/sim/wrong_device.hpp"

namespace troupe::actors::sim {
namespace {

using namespace std::chrono_literals;

world_settings small() {
  world_settings s;
  s.seed = 3;
  s.members = 4;
  s.steps = 6;
  return s;
}

class told_of_changes : public testing::Test {
 protected:
  told_of_changes()
      : settings_(small()), checked_(settings_.toy, settings_.steps), world_(settings_, checked_) {
    checked_.watch(
        [this](member_id id) -> const toy_computation& { return world_.device(id.value); });
    // Everybody has adopted plan 0, and nobody has done anything in it.
    while (checked_.checks() < settings_.members && world_.step_on()) {
    }
    EXPECT_FALSE(checked_.first());
  }
  std::string found() const { return checked_.first() ? checked_.first()->invariant : ""; }
  const protocol::plan& first() { return world_.store().plans.front(); }
  // A plan that may follow the first one.
  protocol::plan next(std::uint64_t base = 0) {
    protocol::plan p = first();
    p.number = generation(1);
    p.parent = plan_hash(print_plan(first()));
    p.verdict = "change";
    p.base = base;
    return p;
  }
  void adopt(const protocol::plan& p) {
    for (const protocol::plan_member& m : p.members) checked_.plan_adopted(m.id, p);
  }
  protocol::record_notice record_of(std::uint64_t step) {
    protocol::record_notice n;
    n.record = checked_.reference().record(step);
    return n;
  }
  void all_see(std::uint64_t step) {
    for (const protocol::plan_member& m : first().members) {
      checked_.record_seen(m.id, record_of(step));
    }
  }
  block_id a_block() {
    return {first().placement.front().layer, first().placement.front().first_block};
  }
  member_id its_primary() { return first().placement.front().primary; }
  member_id its_backup() { return first().placement.front().backups.front(); }

  world_settings settings_;
  invariants checked_;
  world world_;
};

// --- S-3 ---

TEST_F(told_of_changes, a_plan_that_follows_the_one_before_is_no_violation) {
  adopt(next());
  EXPECT_EQ(found(), "");
}
TEST_F(told_of_changes, two_plans_of_one_number_are_found) {
  adopt(next());
  protocol::plan other = next();
  other.reason = "another collector's";
  checked_.plan_adopted(member_id(9), other);
  EXPECT_EQ(found(), "S-3");
}
TEST_F(told_of_changes, a_plan_that_does_not_name_the_one_before_is_found) {
  protocol::plan p = next();
  p.parent = plan_hash("something else");
  adopt(p);
  EXPECT_EQ(found(), "S-3");
}
TEST_F(told_of_changes, a_member_that_adopts_a_lower_plan_or_the_same_one_again_is_found) {
  checked_.plan_adopted(member_id(2), next());
  checked_.plan_adopted(member_id(2), first());
  EXPECT_EQ(found(), "S-3");
}

// --- S-5 ---

TEST_F(told_of_changes, whatever_a_member_does_in_a_plan_after_its_promise_is_found) {
  using act = std::function<void(invariants&, member_id)>;
  const block_id block = a_block();
  protocol::vote vote;
  vote.step = 1;
  const std::vector<act> acts{
      [&](invariants& c, member_id m) {
        c.node_taken(m, 1, {block, 0, {0, 1}});
      },
      [&](invariants& c, member_id m) { c.sum_held_by_backup(m, 1, block, {}); },
      [&](invariants& c, member_id m) { c.voted(m, vote); },
      [&](invariants& c, member_id m) { c.record_seen(m, record_of(1)); },
      [&](invariants& c, member_id m) { c.committed(m, 1); },
  };
  for (std::size_t i = 0; i < acts.size(); ++i) {
    SCOPED_TRACE(i);
    invariants fresh(settings_.toy, settings_.steps);
    fresh.watch([this](member_id id) -> const toy_computation& { return world_.device(id.value); });
    for (const protocol::plan_member& m : first().members) fresh.plan_adopted(m.id, first());
    fresh.promised(its_primary(), generation(1));
    ASSERT_FALSE(fresh.first());
    acts[i](fresh, its_primary());
    ASSERT_TRUE(fresh.first());
    EXPECT_EQ(fresh.first()->invariant, "S-5");
  }
}
TEST_F(told_of_changes, a_promise_binds_whoever_made_it_and_ends_with_its_plan) {
  checked_.promised(its_primary(), generation(1));
  checked_.record_seen(its_backup(), record_of(1));
  EXPECT_EQ(found(), "");
  protocol::plan p = next();
  adopt(p);
  checked_.record_seen(its_primary(), record_of(1));
  EXPECT_EQ(found(), "");
}

// --- S-6 ---

TEST_F(told_of_changes, a_plan_from_behind_an_announced_step_is_found) {
  all_see(1);
  checked_.committed(first().coordinator, 1);
  ASSERT_EQ(found(), "");
  adopt(next(0));
  EXPECT_EQ(found(), "S-6");
}
TEST_F(told_of_changes, a_plan_that_goes_on_from_an_announced_step_is_right) {
  all_see(1);
  checked_.committed(first().coordinator, 1);
  adopt(next(1));
  EXPECT_EQ(found(), "") << "its holders are one step behind, with the gradient";
}
TEST_F(told_of_changes, a_step_that_was_only_decided_may_be_done_again) {
  checked_.record_seen(first().coordinator, record_of(1));  // H-12
  adopt(next(0));
  EXPECT_EQ(found(), "");
}

// --- S-7 ---

TEST_F(told_of_changes, a_plan_whose_holder_is_far_behind_its_base_is_found) {
  adopt(next(2));
  EXPECT_EQ(found(), "S-7");
}
TEST_F(told_of_changes, a_plan_that_lists_a_holder_without_a_copy_is_found) {
  protocol::plan p = next();
  for (const protocol::plan_member& m : p.members) {
    if (m.id == its_primary() || m.id == its_backup()) continue;
    p.placement.front().backups = {m.id};
  }
  adopt(p);
  EXPECT_EQ(found(), "S-7");
}
TEST_F(told_of_changes, a_new_life_holds_nothing_of_what_the_old_one_held) {  // H-06
  checked_.watch_lives([this](member_id id) { return incarnation(id == its_backup() ? 2 : 1); });
  protocol::plan p = next();
  for (protocol::plan_member& m : p.members) {
    if (m.id == its_backup()) m.life = incarnation(2);
  }
  adopt(p);
  EXPECT_EQ(found(), "S-7");
}

// --- S-15 ---

struct a_finished_world : testing::Test {
  a_finished_world() : checked(settings.toy, settings.steps), w(settings, checked) {
    checked.watch([this](member_id id) -> const toy_computation& { return w.device(id.value); });
    w.run();
    EXPECT_FALSE(checked.first());
    EXPECT_EQ(w.trouble(), "");
  }
  std::string found() {
    checked.check_end(w.store());
    return checked.first() ? checked.first()->invariant : "";
  }
  // Records a step once more.
  void record(const committed_step& step) {
    memory_recorder recorder(
        member_id(0), [](const auto& work) { work(); }, w.store(), 1s);
    recorder.started(w.store().plans.front(), {});
    recorder.committed(step, [](status s) { EXPECT_TRUE(s); });
  }
  world_settings settings = small();
  invariants checked;
  world w;
};

TEST_F(a_finished_world, has_a_line_for_every_step) { EXPECT_EQ(found(), ""); }
TEST_F(a_finished_world, in_which_a_step_has_no_line_is_found) {
  w.store().lines.erase(4);
  EXPECT_EQ(found(), "S-15");
}
TEST_F(a_finished_world, may_have_equal_lines_of_one_step) {  // H-28
  record(w.store().lines.at(3));
  EXPECT_EQ(found(), "");
}
TEST_F(a_finished_world, in_which_two_lines_of_one_step_differ_is_found) {
  committed_step other = w.store().lines.at(3);
  other.record.loss += 1;
  record(other);
  EXPECT_EQ(found(), "S-15");
}
TEST_F(a_finished_world, in_which_a_step_was_recorded_before_the_one_before_it_is_found) {
  const committed_step step = w.store().lines.at(4);
  w.store().lines.erase(3);
  w.store().lines.erase(4);
  record(step);
  EXPECT_EQ(found(), "S-15");
}

// --- S-14 ---

// A plan that goes on from step 2, made after the first one.
void publish_another(world& w) {
  protocol::plan next = w.store().plans.back();
  next.number = generation(next.number.value + 1);
  next.coordinator = member_id(1);
  next.base = 2;
  w.store().plans.push_back(next);
}
TEST_F(a_finished_world, in_which_the_coordinator_of_an_older_plan_records_a_later_step_is_found) {
  publish_another(w);
  record(w.store().lines.at(3));
  EXPECT_EQ(found(), "S-14");
}
TEST_F(a_finished_world, may_have_two_who_record_what_the_newer_plan_begins_with) {
  publish_another(w);
  record(w.store().lines.at(2));
  EXPECT_EQ(found(), "");
}
TEST_F(a_finished_world, in_which_a_plan_does_not_name_the_one_before_is_found) {
  protocol::plan next = w.store().plans.back();
  next.number = generation(next.number.value + 1);
  next.parent = "another";
  const auto view = w.store().view([](const auto& work) { work(); });
  bool answered = false;
  view->publish_next(next, [&](const result<protocol::plan>&) { answered = true; });
  while (!answered && w.step_on()) {
  }
  EXPECT_EQ(found(), "S-14");
}

// --- in a world that loses a member ---

// What was found first after the loss; "" if nothing was.
std::string found_after_a_loss(const world_parts& parts) {
  world_settings s = small();
  s.steps = 30;
  invariants checked(s.toy, s.steps);
  world w(s, checked, parts);
  checked.watch([&w](member_id id) -> const toy_computation& { return w.device(id.value); });
  checked.watch_lives([&w](member_id id) { return w.life(id.value); });
  while (w.lines().size() < 3 && w.step_on()) {
  }
  w.kill(3, 3ms);
  w.run(60s);
  if (!checked.first() && w.trouble().empty()) checked.check_end(w.store());
  EXPECT_GE(w.store().plans.size(), 2u);
  return checked.first() ? checked.first()->invariant : "";
}

class takes_copies_wrongly : public toy_computation {
  using toy_computation::toy_computation;
  void take_state(block_id block, std::shared_ptr<const std::vector<std::byte>> bytes,
                  const hash128& hash, completion done) override {
    toy_computation::take_state(block, std::move(bytes), hash, [this, block, done](trouble t) {
      memory(block).second_moments[3] += 0.5f;
      done(t);
    });
  }
};

// Every one of its copies is of what it has not.
class copies_wrongly : public toy_computation {
  using toy_computation::toy_computation;
  void copy_state(block_id block, answer<state_copy> done) override {
    toy_computation::copy_state(block, [done](trouble t, state_copy copy) {
      auto changed = std::make_shared<std::vector<std::byte>>(*copy.bytes);
      changed->back() ^= std::byte{0x40};
      const hash128 hash = hash_bytes(*changed);
      done(t, {changed, hash});
    });
  }
};

class rolls_forward_twice : public toy_computation {
  using toy_computation::toy_computation;
  void adopt(const member_share& share) override {
    changed_ = ++adopted_ > 1;
    toy_computation::adopt(share);
  }
  void apply(block_id block, const protocol::decision_record& record, completion done) override {
    toy_computation::apply(block, record, [this, block, record, done](trouble t) {
      if (!changed_) return done(t);
      toy_computation::apply(block, record, done);
    });
  }
  int adopted_ = 0;
  bool changed_ = false;
};

TEST(invariants, hold_in_a_world_that_loses_a_member) {
  EXPECT_EQ(found_after_a_loss(usual_parts()), "");
}
TEST(invariants, find_a_member_that_spoils_the_copies_it_takes) {
  EXPECT_EQ(found_after_a_loss(with_device<takes_copies_wrongly>(member_id(2))), "S-17");
}
TEST(invariants, find_a_primary_that_copies_something_else) {
  EXPECT_EQ(found_after_a_loss(with_device<copies_wrongly>(member_id(1))), "S-17");
}
TEST(invariants, find_a_member_that_updates_twice_after_a_change_of_plans) {
  EXPECT_EQ(found_after_a_loss(with_device<rolls_forward_twice>(member_id(2))), "S-2");
}

}  // namespace
}  // namespace troupe::actors::sim
