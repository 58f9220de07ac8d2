// Each rule finds a world in which it is broken: mostly one to which something is done that the
// rules are not told of, so that they take a world that cannot go on for one that does not.
#include "actors/sim/liveness.hpp"

#include <gtest/gtest.h>

#include "actors/sim/campaign.hpp"
#include "actors/sim/faults.hpp"
#include "tests/actors/sim/passing_transport.hpp"

namespace troupe::actors::sim {
namespace {

using namespace std::chrono_literals;

struct a_world_that_is_watched : testing::Test {
  a_world_that_is_watched() {
    s.seed = 5;
    s.members = 4;
    s.steps = 60;
    s.slowness = 40;
  }
  void start(const liveness_bounds& bounds = {}) {
    checked.emplace(s.toy, s.steps);
    w.emplace(s, *checked, parts);
    checked->watch([this](member_id id) -> const toy_computation& { return w->device(id.value); });
    checked->watch_lives([this](member_id id) { return w->life(id.value); });
    rules.emplace(*w, *checked, bounds);
    run([&] { return w->lines().size() >= 5; });
  }
  template <class Enough>
  void run(Enough enough) {
    while (!enough() && !rules->first() && w->now() < 60s && w->step_on()) rules->look();
  }
  std::string found_at_end() {
    run([&] { return w->over(); });
    rules->check_end();
    if (checked->first()) return checked->first()->text();
    EXPECT_GT(rules->checks(), 0u);
    return rules->first() ? rules->first()->invariant : "";
  }

  world_settings s;
  world_parts parts = usual_parts();
  std::optional<invariants> checked;
  std::optional<world> w;
  std::optional<liveness> rules;
};

TEST_F(a_world_that_is_watched, breaks_no_rule_when_a_member_is_lost_and_comes_back) {
  start();
  w->kill(3, 3ms);
  rules->struck(3, false);
  run([&] { return w->lines().size() >= 12; });
  rules->started(3);
  w->revive(3);
  EXPECT_EQ(found_at_end(), "");
}

TEST_F(a_world_that_is_watched, in_which_a_member_does_not_hear_of_a_loss_breaks_L_1) {
  start();
  w->freeze(2);
  w->kill(3, 3ms);
  rules->struck(3, false);
  EXPECT_EQ(found_at_end(), "L-1");
}

TEST_F(a_world_that_is_watched, that_stands_still_breaks_L_2) {
  start();
  w->store().answer_time = 1h;
  w->kill(3, 3ms);
  rules->struck(3, false);
  EXPECT_EQ(found_at_end(), "L-2");
}

TEST_F(a_world_that_is_watched, in_which_nobody_makes_copies_breaks_L_3) {
  s.backups = 2;
  parts.adjust = [](member_id, worker_settings& worker, introductions_settings&) {
    worker.backups = 1;
  };
  start();
  EXPECT_EQ(found_at_end(), "L-3");
}

TEST_F(a_world_that_is_watched, in_which_a_newcomer_does_not_come_in_breaks_L_4) {
  start();
  const std::size_t newcomer = w->add_member();
  rules->started(newcomer);
  w->freeze(newcomer);
  EXPECT_EQ(found_at_end(), "L-4");
}

TEST_F(a_world_that_is_watched, in_which_plans_change_without_a_cause_breaks_L_5) {
  start();
  w->kill(3, 3ms);
  EXPECT_EQ(found_at_end(), "L-5");
}

TEST_F(a_world_that_is_watched, that_works_while_it_can_only_wait_breaks_L_6) {
  s.backups = 0;
  parts.adjust = [](member_id, worker_settings& worker, introductions_settings&) {
    worker.heartbeat = 500us;
  };
  start();
  w->freeze(1);
  rules->struck(1, true);
  EXPECT_EQ(found_at_end(), "L-6");
}

TEST_F(a_world_that_is_watched, that_waits_for_the_last_holder_breaks_no_rule_and_goes_on) {
  s.backups = 0;
  start();
  w->freeze(1);
  rules->struck(1, true);
  const time_since_start until = w->now() + 15s;
  run([&] { return w->now() > until; });
  EXPECT_FALSE(rules->first()) << rules->first()->text();
  EXPECT_LT(w->lines().size(), 10u);
  w->thaw(1);
  rules->back(1);
  EXPECT_EQ(found_at_end(), "");
}

// Closes nothing.
class keeps_links final : public passing_transport {
  using passing_transport::passing_transport;
  void close(comm::link_id) override {}
};

TEST_F(a_world_that_is_watched, whose_members_leave_connections_open_breaks_L_7) {
  parts.transport = [](member_id, std::unique_ptr<comm::transport> inner) {
    return std::make_unique<keeps_links>(std::move(inner));
  };
  start();
  EXPECT_EQ(found_at_end(), "L-7");
}

}  // namespace
}  // namespace troupe::actors::sim
