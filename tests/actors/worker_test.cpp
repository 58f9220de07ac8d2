// What a worker does around the plan: meeting, ending and refusing, over whole simulated worlds.
#include "actors/worker.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <stdexcept>

#include "actors/sim/world.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using sim::toy_computation;
using sim::world;
using sim::world_parts;
using sim::world_settings;
using sim::world_watcher;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

world_settings members(std::uint32_t count) {
  world_settings s;
  s.members = count;
  return s;
}

// What all members still alive ended with.
void expect_all_ended(const world& w, exit_code code, const std::string& why) {
  for (std::size_t i = 0; i < w.size(); ++i) {
    if (!w.ended(i)) continue;
    EXPECT_EQ(w.ended(i)->code, code) << "member " << i << ": " << w.ended(i)->why;
    EXPECT_THAT(w.ended(i)->why, HasSubstr(why)) << "member " << i;
  }
}

void expect_reference(world& w, const world_settings& s) {
  const sim::toy_reference reference(s.toy, sim::toy_reference_settings(), s.steps);
  ASSERT_EQ(w.store().saves.count(s.steps), 1u);
  for (const auto& [id, state] : w.store().saves.at(s.steps).blocks) {
    EXPECT_EQ(sim::hashes_of(state).state, sim::hashes_of(reference.state(s.steps, id)).state);
  }
}

TEST(worker, that_convenes_gives_up_after_a_while_and_names_the_slots_that_nobody_took) {
  world_watcher nobody;
  world w(members(7), nobody);
  for (const std::size_t absent : {2u, 4u, 5u, 6u}) w.kill(absent, {});
  w.run();
  ASSERT_TRUE(w.ended(0) && w.ended(1) && w.ended(3));
  expect_all_ended(w, exit_code::too_few, "only 3 of 7 members came within 600 s");
  expect_all_ended(w, exit_code::too_few, "missing are the slots 2, 4-6");
  EXPECT_GE(w.now(), 600s);
  EXPECT_LT(w.now(), 602s);
  EXPECT_TRUE(w.ended(0)->our_own);
  EXPECT_FALSE(w.ended(1)->our_own) << "one process tells the cause";
  EXPECT_THAT(w.ended(1)->why, HasSubstr("member 0 (worker-0 on host-0)"));
}

TEST(worker, gives_up_when_nobody_convenes) {
  world_watcher nobody;
  world_parts parts = sim::usual_parts();
  parts.adjust = [](member_id, worker_settings& w, introductions_settings&) {
    w.wait_for_members = 5s;
  };
  world w(members(2), nobody, parts);
  w.kill(0, {});
  w.run();
  ASSERT_TRUE(w.ended(1));
  EXPECT_EQ(w.ended(1)->code, exit_code::too_few);
  EXPECT_THAT(w.ended(1)->why, AllOf(HasSubstr("member 0"), HasSubstr("within 5 s")));
}

TEST(worker, that_convenes_ends_everybody_when_it_is_asked_to_stop_before_there_is_a_plan) {
  world_watcher nobody;
  world w(members(4), nobody);
  w.kill(3, {});  // so that the others wait
  while (w.now() < 1s && w.step_on()) {
  }
  w.stop(0, "signal 15");
  w.run();
  ASSERT_TRUE(w.ended(0) && w.ended(1) && w.ended(2));
  expect_all_ended(w, exit_code::interrupted, "signal 15");
  EXPECT_LT(w.now(), 2s);
  EXPECT_TRUE(w.store().plans.empty());
}

TEST(worker, tells_the_one_that_convenes_when_it_is_asked_to_stop_before_there_is_a_plan) {
  world_watcher nobody;
  world w(members(4), nobody);
  w.kill(3, {});
  while (w.now() < 1s && w.step_on()) {
  }
  w.stop(2, "signal 15");
  w.run();
  ASSERT_TRUE(w.ended(0) && w.ended(1) && w.ended(2));
  expect_all_ended(w, exit_code::interrupted, "signal 15");
  EXPECT_LT(w.now(), 2s);
}

TEST(worker, stops_at_once_while_it_has_met_nobody) {
  world_watcher nobody;
  world w(members(2), nobody);
  w.kill(0, {});
  w.stop(1, "signal 2");
  w.run();
  ASSERT_TRUE(w.ended(1));
  EXPECT_EQ(w.ended(1)->code, exit_code::interrupted);
  EXPECT_LT(w.now(), 1s);
}

TEST(worker, ends_well_when_nothing_is_left_to_do) {
  world_watcher nobody;
  world w(members(3), nobody);
  w.store().finished = true;
  w.run();
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(w.ended(i));
  expect_all_ended(w, exit_code::ok, "the run is finished");
  EXPECT_EQ(w.trouble(), "");
  EXPECT_TRUE(w.store().plans.empty());
}

TEST(worker, gives_a_slot_to_the_newer_life_of_its_member) {
  world_watcher nobody;
  world_settings s = members(5);
  world_parts parts = sim::usual_parts();
  // Members 2 and 3 are two lives of slot 2; the last one comes late.
  parts.adjust = [](member_id who, worker_settings& w, introductions_settings&) {
    w.expected = 4;
    if (who == member_id(3)) w.me.wish = member_id(2);
    if (who == member_id(3)) w.me.life = incarnation(2);
    if (who == member_id(4)) w.me.wish = member_id(3);
  };
  world w(s, nobody, parts);
  w.network().stop(comm::process_id(4));
  while (w.now() < 1s && w.step_on()) {
  }
  w.network().continue_process(comm::process_id(4));
  w.run();
  ASSERT_TRUE(w.ended(2));
  EXPECT_EQ(w.ended(2)->code, exit_code::bad_config) << w.ended(2)->why;
  EXPECT_THAT(w.ended(2)->why, testing::HasSubstr("its worker-2 is another process"));
  for (const std::size_t i : {0u, 1u, 3u, 4u}) {
    ASSERT_TRUE(w.ended(i));
    EXPECT_EQ(w.ended(i)->code, exit_code::ok) << i << ": " << w.ended(i)->why;
  }
  ASSERT_EQ(w.store().plans.size(), 1u);
  EXPECT_EQ(w.store().plans[0].find(member_id(2))->life, incarnation(2));
  expect_reference(w, s);
}

TEST(worker, of_another_run_is_refused_and_the_run_that_it_knocked_at_goes_on_undisturbed) {
  world_watcher nobody;
  const world_settings s = members(4);
  world_parts parts = sim::usual_parts();
  parts.adjust = [](member_id who, worker_settings& w, introductions_settings&) {
    w.expected = 3;
    if (who == member_id(3)) w.me.run_id = "elsewhere";
  };
  world w(s, nobody, parts);
  w.run();
  ASSERT_TRUE(w.ended(3));
  EXPECT_EQ(w.ended(3)->code, exit_code::bad_config);
  EXPECT_THAT(w.ended(3)->why, AllOf(HasSubstr("could not join the run"),
                                     HasSubstr("\"simulated\""), HasSubstr("\"elsewhere\"")));
  EXPECT_THAT(w.records(0).refused,
              Contains(AllOf(HasSubstr("\"simulated\""), HasSubstr("\"elsewhere\""))));
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(w.ended(i));
    EXPECT_EQ(w.ended(i)->code, exit_code::ok) << w.ended(i)->why;
  }
  expect_reference(w, s);
}

TEST(worker, that_comes_when_the_plan_is_made_without_it_is_taken_in_by_a_later_one) {
  world_watcher nobody;
  world_settings s = members(4);
  s.steps = 100;
  world_parts parts = sim::usual_parts();
  parts.adjust = [](member_id, worker_settings& w, introductions_settings&) { w.expected = 3; };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    world_settings seeded = s;
    seeded.seed = seed;
    seeded.network.jitter = 300us;
    world w(seeded, nobody, parts);
    w.run();
    SCOPED_TRACE(seed);
    EXPECT_EQ(w.store().plans.back().members.size(), 4u);
    for (std::uint32_t i = 0; i < 4; ++i) {
      ASSERT_TRUE(w.ended(i));
      EXPECT_EQ(w.ended(i)->code, exit_code::ok) << "member " << i << ": " << w.ended(i)->why;
    }
    expect_reference(w, seeded);
  }
}

// One member failed, the others have come to the end without it.
void expect_only_one_ends(const world& w, std::size_t who, const std::string& why) {
  for (std::size_t i = 0; i < w.size(); ++i) {
    ASSERT_TRUE(w.ended(i)) << i;
    EXPECT_EQ(w.ended(i)->code, i == who ? exit_code::defect : exit_code::ok)
        << i << ": " << w.ended(i)->why;
  }
  EXPECT_THAT(w.ended(who)->why, HasSubstr(why));
  EXPECT_TRUE(w.ended(who)->our_own);
}

// A device whose driver throws.
class broken_device final : public toy_computation {
 public:
  using toy_computation::toy_computation;
  void open(std::uint32_t layer) override {
    if (opened_++ == 9) throw std::runtime_error("the driver is gone");
    toy_computation::open(layer);
  }
  void load(std::uint64_t step, completion done) override {
    if (step == load_fails_at) throw std::runtime_error("the data is gone");
    toy_computation::load(step, std::move(done));
  }
  void adopt(const member_share& share) override {
    if (adopt_fails) throw std::runtime_error("no device");
    toy_computation::adopt(share);
  }
  std::uint64_t load_fails_at = 0;
  bool adopt_fails = false;

 private:
  int opened_ = 0;
};

world_parts with_broken(member_id whose, const std::function<void(broken_device&)>& how) {
  world_parts parts = sim::usual_parts();
  parts.computation = [usual = parts.computation, whose, how](
                          member_id who, const sim::toy_shape& toy, sim::timeline& time,
                          const clock_source& clock, const sim::toy_speed& speed,
                          std::function<void(std::function<void()>)> post,
                          std::function<void(std::uint64_t, std::uint32_t)> computed)
      -> std::unique_ptr<toy_computation> {
    if (who != whose) return usual(who, toy, time, clock, speed, post, computed);
    auto device = std::make_unique<broken_device>(toy, time, clock, speed, post, computed);
    how(*device);
    return device;
  };
  return parts;
}

TEST(worker, names_the_actor_that_an_exception_ended_and_the_others_go_on) {
  world_watcher nobody;
  const world_settings s = members(4);
  world w(s, nobody, with_broken(member_id(2), [](broken_device&) {}));
  w.run();
  expect_only_one_ends(w, 2, "the actor stage ended by an exception: the driver is gone");
  expect_reference(w, s);
}

TEST(worker, of_a_wide_world_may_fail_without_ending_it) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    world_watcher nobody;
    world_settings s = members(16);
    s.toy.virtual_ranks = 16;
    s.seed = seed;
    s.network.jitter = 5ms;
    world w(s, nobody, with_broken(member_id(9), [](broken_device&) {}));
    w.run();
    expect_only_one_ends(w, 9, "the actor stage ended by an exception");
  }
}

TEST(worker, names_whichever_actor_it_was) {
  world_watcher nobody;
  world w(members(3), nobody,
          with_broken(member_id(1), [](broken_device& d) { d.load_fails_at = 2; }));
  w.run();
  expect_only_one_ends(w, 1, "the actor data_loader ended by an exception");
}

TEST(worker, ends_its_process_even_when_it_is_the_worker_itself_that_fails) {
  world_watcher nobody;
  world w(members(3), nobody,
          with_broken(member_id(1), [](broken_device& d) { d.adopt_fails = true; }));
  w.run();
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(w.ended(i)) << i;
  EXPECT_EQ(w.ended(1)->code, exit_code::defect);
  EXPECT_THAT(w.ended(1)->why, HasSubstr("the actor worker ended by an exception: no device"));
  EXPECT_EQ(w.ended(0)->code, exit_code::too_few);
  EXPECT_THAT(w.ended(0)->why, HasSubstr("member 1"));
}

TEST(worker, stops_the_whole_run_in_order_when_all_are_asked_in_whatever_order) {
  for (std::size_t asked = 0; asked < 3; ++asked) {
    world_watcher nobody;
    world_settings s = members(3);
    s.steps = 1000;
    world w(s, nobody);
    while (w.store().plans.empty() && w.step_on()) {
    }
    const time_since_start began = w.now();
    while (w.now() < began + 30ms && w.step_on()) {
    }
    for (std::size_t i = 0; i < 3; ++i) w.stop((asked + i) % 3, "signal 15");
    w.run();
    for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(w.ended(i)) << i;
    expect_all_ended(w, exit_code::interrupted, "signal 15");
    ASSERT_EQ(w.store().saves.size(), 1u);
    const std::uint64_t step = w.store().saves.begin()->first;
    s.steps = step;
    expect_reference(w, s);
  }
}

TEST(worker, takes_no_notice_of_a_wall_clock_that_jumps) {
  std::uint64_t undisturbed = 0;
  for (const bool jumps : {false, true}) {
    world_watcher nobody;
    world_settings s = members(3);
    s.steps = 60;
    world w(s, nobody);
    for (const std::uint64_t step : {20u, 40u}) {
      while (w.records(0).lines.size() < step && w.step_on()) {
      }
      if (jumps) w.jump_wall(step == 20 ? 1h : -1h);
    }
    w.run();
    EXPECT_EQ(w.trouble(), "");
    expect_reference(w, s);
    EXPECT_TRUE(w.records(0).lost.empty());
    if (!jumps) undisturbed = w.fingerprint();
    EXPECT_EQ(w.fingerprint(), undisturbed) << "not one event came earlier or later";
  }
}

// Gradients and records travel on different ways: a member whose control links are slow learns of
// a decision when others are a step further.
TEST(worker, keeps_up_although_records_reach_it_after_the_next_steps_gradients) {
  for (const std::uint32_t count : {2u, 3u, 10u}) {
    world_watcher nobody;
    world_settings s = members(count);
    s.network.latency = 1ms;
    s.network.jitter = 30ms;
    world w(s, nobody);
    w.run();
    EXPECT_EQ(w.trouble(), "");
    expect_reference(w, s);
  }
}

}  // namespace
}  // namespace troupe::actors
