// Every named point, times who comes by it, times what happens to that member in that moment: the
// run ends with the reference's bits each time.
#include "tests/actors/sim/crash_sweep.hpp"

namespace troupe::actors::sim {
namespace {

using at = protocol_point;

const std::vector<role> coordinator = {role::coordinator};
const std::vector<role> holders = {role::coordinator, role::primary, role::backup, role::another};
const std::vector<role> everybody = {role::coordinator, role::primary, role::backup,
                                     role::another,     role::spare,   role::joiner};
const std::vector<role> who_computes = {role::coordinator, role::primary, role::backup,
                                        role::another, role::joiner};

TEST_F(crash_sweep, a_member_is_struck_while_it_computes_a_step) {
  strike(at::step_begin, 1, who_computes);
  strike(at::microbatch_done, 1, who_computes);
  strike(at::partial_sent, 1, who_computes);
  strike(at::partial_sent, 3, holders);
  strike(at::params_complete, 1, who_computes);
}

TEST_F(crash_sweep, a_member_is_struck_while_a_gradient_becomes_held) {
  strike(at::reduced, 1, holders);
  strike(at::grad_forwarded, 1, holders);
  strike(at::grad_held, 1, everybody);
  strike(at::grad_held, 2, holders);
  strike(at::acked, 1, everybody);
  strike(at::acked, 2, holders);
  strike(at::voted, 1, who_computes);
}

TEST_F(crash_sweep, a_member_is_struck_while_a_step_is_decided_and_applied) {
  strike(at::votes_complete, 1, coordinator);
  strike(at::decided, 1, coordinator);
  for (const std::uint32_t k : {1, 2, 3, 4}) strike(at::commit_sent, k, coordinator, {}, 6);
  strike(at::commit_seen, 1, everybody);
  strike(at::applying, 1, everybody);
  strike(at::applied, 1, everybody);
  strike(at::applied, 2, holders);
  strike(at::params_sent, 1, holders);
  strike(at::params_sent, 2, holders);
  strike(at::stable, 1, coordinator);
}

TEST_F(crash_sweep, a_member_is_struck_while_the_next_plan_is_made) {
  strike(at::suspected, 1, holders);
  for (const std::uint32_t k : {1, 2, 3}) strike(at::collect_sent, k, coordinator);
  strike(at::promised, 1, everybody);
  strike(at::collected, 1, coordinator);
  strike(at::plan_written, 1, coordinator);
  strike(at::published, 1, coordinator);
  for (const std::uint32_t k : {1, 2, 3}) strike(at::verdict_sent, k, coordinator);
  strike(at::adopted, 1, everybody);
  strike(at::resumed, 1, everybody);
}

TEST_F(crash_sweep, a_member_is_struck_while_it_makes_a_plan_in_place_of_the_coordinator) {
  const std::vector<role> other = {role::not_coordinator};
  const beginning lost = beginning::coordinators_loss;
  strike(at::suspected, 1, other, lost);
  for (const std::uint32_t k : {1, 2, 3}) strike(at::collect_sent, k, other, lost);
  strike(at::collected, 1, other, lost);
  strike(at::plan_written, 1, other, lost);
  strike(at::published, 1, other, lost);
  for (const std::uint32_t k : {1, 2, 3}) strike(at::verdict_sent, k, coordinator, lost);
}

TEST_F(crash_sweep, a_member_is_struck_while_copies_are_made) {
  strike(at::copy_begin, 1, everybody);
  strike(at::copy_half, 1, everybody);
  strike(at::copy_verified, 1, everybody);
  strike(at::redundancy_restored, 1, coordinator);
}

TEST_F(crash_sweep, a_member_is_struck_while_somebody_comes_or_goes) {
  strike(at::join_hello, 1, {role::joiner});
  strike(at::join_admitted, 1, coordinator);
  strike(at::notice_received, 1, holders, beginning::leaving);
  strike(at::drained, 1, holders, beginning::leaving);
}

// What the sweep stands on: a coordinator that is killed between two messages of one sending has
// sent those before, and nothing after.
TEST(strikes, fall_between_the_messages_that_a_member_sends) {
  for (const std::uint32_t k : {1u, 2u, 3u}) {
    world_settings s;
    s.members = 5;
    s.steps = 20;
    watched_points points(s.toy, s.steps);
    world w(s, points);
    points.watch([&w](member_id id) -> const toy_computation& { return w.device(id.value); });
    points.watch_lives([&w](member_id id) { return w.life(id.value); });
    bool struck = false;
    std::uint32_t know = 0, knew = 0;
    points.at_point = [&](member_id who, protocol_point where, std::uint32_t nth) {
      if (where == at::commit_seen && struck) ++know;
      if (struck || where != at::commit_sent || nth != k || w.lines().size() < 5) return;
      struck = true;
      w.kill(who.value, std::nullopt);
      w.at(w.now() + 25us, [&] { knew = know; });  // a frame takes 20
    };
    while (knew == 0 && w.now() < 1s && w.step_on()) {
    }
    points.at_point = {};
    EXPECT_EQ(knew, k);
  }
}

}  // namespace
}  // namespace troupe::actors::sim
