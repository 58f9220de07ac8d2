// Who is named, when, and who never is.
#include "actors/straggler_watch.hpp"

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using testing::IsEmpty;

struct straggler_watch_test : testing::Test {
  protocol::plan plan;
  straggler_watch watch;
  std::map<member_id, double> speed;  // 1: as the others

  void SetUp() override { world(3); }
  void world(std::uint32_t members) {
    plan.members.clear();
    plan.number = generation(plan.number.value + 1);
    for (std::uint32_t i = 0; i < members; ++i) {
      plan.members.emplace_back();
      plan.members.back().id = member_id(i);
      plan.members.back().life = incarnation(1);
      plan.members.back().leaves = 4;
    }
  }
  // Everybody's step takes as long as the slowest one's: the others wait.
  std::vector<straggler> step() {
    std::map<member_id, protocol::step_facts> facts;
    double longest = 0;
    for (const auto& m : plan.members) {
      const double slow = 1 / (speed.contains(m.id) ? speed[m.id] : 1.0);
      const double share = m.leaves / 4.0;
      facts[m.id].forward = 0.010 * slow * share;
      facts[m.id].backward = 0.020 * slow * share;
      facts[m.id].apply = 0.002;
      longest = std::max(longest, 0.032 * slow * share);
    }
    for (auto& [id, f] : facts) f.wait = longest - f.forward - f.backward - f.apply;
    return watch.step(plan, facts);
  }
  std::vector<straggler> steps(int count) {
    std::vector<straggler> all;
    for (int i = 0; i < count; ++i) {
      for (auto& s : step()) all.push_back(std::move(s));
    }
    return all;
  }
};

TEST_F(straggler_watch_test, nobody_is_named_where_all_are_alike) {
  EXPECT_THAT(steps(100), IsEmpty());
  EXPECT_NEAR(watch.ratio(member_id(1)).value(), 1, 1e-9);
}

TEST_F(straggler_watch_test, the_slow_one_is_named_once_with_its_phase_and_not_those_who_wait) {
  (void)steps(20);
  speed[member_id(1)] = 0.3;
  const auto news = steps(20);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].who, member_id(1));
  EXPECT_FALSE(news[0].over);
  EXPECT_GT(news[0].ratio, 1.5);
  EXPECT_EQ(news[0].phase, "backward");
  EXPECT_GT(watch.ratio(member_id(1)).value(), 2.9);
  EXPECT_NEAR(watch.ratio(member_id(0)).value(), 0.5, 0.5);
  EXPECT_THAT(steps(1000), IsEmpty());
}

TEST_F(straggler_watch_test, the_word_is_taken_back_within_twenty_steps_of_its_release) {
  speed[member_id(2)] = 0.3;
  ASSERT_EQ(steps(20).size(), 1u);
  speed.clear();
  const auto news = steps(20);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_TRUE(news[0].over);
  EXPECT_EQ(news[0].who, member_id(2));
}

TEST_F(straggler_watch_test, of_two_the_slower_one_is_named_and_one_alone_never) {
  world(2);
  speed[member_id(0)] = 0.4;
  const auto news = steps(20);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].who, member_id(0));
  world(1);
  EXPECT_THAT(steps(50), IsEmpty());
  EXPECT_FALSE(watch.ratio(member_id(0)));
}

TEST_F(straggler_watch_test, a_larger_share_is_no_slowness) {
  plan.members[0].leaves = 12;
  EXPECT_THAT(steps(30), IsEmpty());
  EXPECT_LT(watch.ratio(member_id(0)).value(), 1.01);
}

TEST_F(straggler_watch_test, one_slow_step_now_and_then_is_nothing) {
  for (int i = 0; i < 60; ++i) {
    speed[member_id(1)] = i % 4 == 0 ? 0.05 : 1;
    EXPECT_THAT(step(), IsEmpty()) << i;
  }
}

TEST_F(straggler_watch_test, differences_of_microseconds_are_noise) {
  std::map<member_id, protocol::step_facts> facts;
  for (std::uint32_t i = 0; i < 3; ++i) facts[member_id(i)].forward = i == 1 ? 0.0009 : 0.0001;
  for (int i = 0; i < 50; ++i) EXPECT_THAT(watch.step(plan, facts), IsEmpty());
}

TEST_F(straggler_watch_test, who_leaves_is_forgotten_and_a_new_plan_measures_anew) {
  speed[member_id(1)] = 0.3;
  ASSERT_EQ(steps(20).size(), 1u);
  plan.members[1].life = incarnation(2);  // another process in its slot, at another speed
  speed.clear();
  plan.number = generation(plan.number.value + 1);
  EXPECT_THAT(steps(7), IsEmpty());
  EXPECT_FALSE(watch.ratio(member_id(1)));
  EXPECT_THAT(steps(20), IsEmpty());
}

}  // namespace
}  // namespace troupe::actors
