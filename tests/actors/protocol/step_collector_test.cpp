#include "actors/protocol/step_collector.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include "config/base/tree.hpp"
#include "tests/actors/protocol/random_world.hpp"

namespace troupe::actors::protocol {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr member_id m0{0}, m1{1}, m2{2};
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// m0 computes two of three virtual ranks, m1 one; m2 is a spare. m0 is primary of both blocks of
// layer 0 (backup m1), m1 of layer 1 (backup m2). Base 4.
plan three_members() {
  plan p;
  for (const member_id id : {m0, m1, m2}) p.members.emplace_back().id = id;
  p.members[0].leaves = 2;
  p.members[1].first_leaf = 2;
  p.members[1].leaves = 1;
  p.virtual_ranks = 3;
  p.base = 4;
  p.placement = {{0, 0, 2, m0, {m1}}, {1, 0, 1, m1, {m2}}};
  return p;
}
step_collector collector() { return {three_members(), {2, 1}}; }

vote first_vote(std::uint64_t step = 5) {
  return {.step = step,
          .sums = {{{0, 0}, {1, 1}, 1.0}, {{0, 1}, {2, 2}, 2.0}},
          .losses = {{0, 10, 1}, {1, 20, 2}},
          .facts = {}};
}
vote second_vote(std::uint64_t step = 5) {
  return {.step = step, .sums = {{{1, 0}, {3, 3}, 4.0}}, .losses = {{2, 40, 4}}, .facts = {}};
}

template <class T>
std::string refusal(const result<T>& r) {
  if (r) return "it was taken";
  EXPECT_EQ(r.failure().code, exit_code::defect);
  return r.failure().message;
}
// Takes the vote; true if it completed the step.
bool take(step_collector& c, member_id from, const vote& v) {
  const auto r = c.add(from, v);
  EXPECT_TRUE(r) << refusal(r);
  return r && r->has_value();
}
void decide_next(step_collector& c) {
  EXPECT_FALSE(take(c, m0, first_vote(c.step())));
  EXPECT_TRUE(take(c, m1, second_vote(c.step())));
  c.decided();
}

TEST(step_collector, sums_up_when_the_last_vote_is_in_and_says_whose_is_missing) {
  step_collector c = collector();
  EXPECT_EQ(c.step(), 5u);
  EXPECT_EQ(c.stable(), 4u);
  EXPECT_THAT(c.waiting_for(), ElementsAre(m0, m1)) << "a spare without primary blocks has none";
  EXPECT_FALSE(take(c, m1, second_vote()));
  EXPECT_THAT(c.waiting_for(), ElementsAre(m0));
  const auto sums = c.add(m0, first_vote());
  ASSERT_TRUE(sums && sums->has_value());
  EXPECT_EQ((*sums)->loss_sum, 70);
  EXPECT_EQ((*sums)->tokens, 7);
  EXPECT_EQ((*sums)->squares, 7);
  EXPECT_THAT(c.waiting_for(), IsEmpty());
  c.decided();
  EXPECT_EQ(c.step(), 6u);
  EXPECT_THAT(c.waiting_for(), ElementsAre(m0, m1));
}

TEST(step_collector, adds_in_the_fixed_tree_whoever_computed_what_and_whoever_voted_first) {
  std::vector<double> losses, squares;
  for (std::uint32_t i = 0; i < 13; ++i) losses.push_back(std::pow(1.7, i % 5) * 1e-3 * (i + 1));
  for (std::uint32_t i = 0; i < 9; ++i) squares.push_back(std::pow(2.3, i % 4) * 1e-5 * (i + 1));
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    random_world random(seed);
    planner_input in = equal_world(random.between(1, 9), 9, 3, 13, random.below(3));
    const plan p = make_plan(in);
    step_collector c(p, {3, 3, 3});
    std::vector<member_id> order = c.waiting_for();
    std::shuffle(order.begin(), order.end(), random.engine());
    for (const member_id id : order) {
      const plan_member& m = *p.find(id);
      vote v;
      v.step = 1;
      for (const block_id b : blocks_primary(p, id)) {
        v.sums.push_back({b, {}, squares[b.layer * 3 + b.block]});
      }
      for (std::uint32_t i = 0; i < m.leaves; ++i) {
        v.losses.push_back({m.first_leaf + i, losses[m.first_leaf + i], 1});
      }
      const auto sums = c.add(id, v);
      ASSERT_TRUE(sums) << refusal(sums);
      ASSERT_EQ(sums->has_value(), id == order.back());
      if (!sums->has_value()) continue;
      EXPECT_EQ((*sums)->loss_sum, tree_sum(losses));
      EXPECT_EQ((*sums)->squares, tree_sum(squares));
      EXPECT_EQ((*sums)->tokens, 13);
    }
  }
}

TEST(step_collector, takes_the_same_vote_twice_as_one) {
  step_collector c = collector();
  EXPECT_FALSE(take(c, m0, first_vote()));
  vote again = first_vote();
  again.facts.forward = 3;  // for people only
  EXPECT_FALSE(take(c, m0, again));
  EXPECT_THAT(c.waiting_for(), ElementsAre(m1));
}

TEST(step_collector, takes_the_same_vote_twice_as_one_although_it_is_not_a_number) {
  step_collector c = collector();
  vote v = first_vote();
  v.sums[1].squares = nan;
  v.losses[0].loss_sum = nan;
  EXPECT_FALSE(take(c, m0, v));
  EXPECT_FALSE(take(c, m0, v));
  v.sums[1].squares = -nan;
  EXPECT_THAT(refusal(c.add(m0, v)), HasSubstr("two different votes"));
}

TEST(step_collector, names_a_member_with_two_different_votes) {
  const auto changes = std::vector<std::function<void(vote&)>>{
      [](vote& v) {
        v.sums[0].hash = {9, 9};
      },
      [](vote& v) { v.sums[0].squares = -0.0; },
      [](vote& v) { v.losses[1].loss_sum = 21; },
      [](vote& v) { v.losses[1].tokens = 3; },
  };
  for (const auto& change : changes) {
    step_collector c = collector();
    vote v = first_vote();
    v.sums[0].squares = 0.0;
    EXPECT_FALSE(take(c, m0, v));
    change(v);
    EXPECT_THAT(refusal(c.add(m0, v)),
                AllOf(HasSubstr("step 5, member 0"), HasSubstr("two different votes")));
  }
}

TEST(step_collector, refuses_votes_of_strangers_spares_and_other_steps) {
  step_collector c = collector();
  EXPECT_THAT(refusal(c.add(member_id(9), first_vote())), HasSubstr("member 9"));
  EXPECT_THAT(refusal(c.add(m2, {.step = 5, .sums = {}, .losses = {}, .facts = {}})),
              HasSubstr("member that has none"));
  EXPECT_THAT(refusal(c.add(m0, first_vote(4))), HasSubstr("while step 5 is collected"));
  EXPECT_FALSE(c.add(m0, first_vote(6)));
  EXPECT_THAT(c.waiting_for(), ElementsAre(m0, m1)) << "nothing of it was kept";
}

TEST(step_collector, refuses_a_vote_that_covers_more_or_less_than_its_members_share) {
  const auto changes = std::vector<std::pair<std::string, std::function<void(vote&)>>>{
      {"blocks", [](vote& v) { v.sums.pop_back(); }},
      {"blocks",
       [](vote& v) {
         v.sums[1].block = {1, 0};
       }},
      {"blocks",
       [](vote& v) {
         v.sums[1].block = {0, 0};
       }},
      {"blocks",
       [](vote& v) {
         v.sums.push_back({{1, 0}, {}, 0});
       }},
      {"virtual ranks", [](vote& v) { v.losses.pop_back(); }},
      {"virtual ranks", [](vote& v) { v.losses[1].leaf = 2; }},
      {"virtual ranks", [](vote& v) { v.losses[1].leaf = 0; }},
      {"virtual ranks",
       [](vote& v) {
         v.losses.push_back({2, 1, 1});
       }},
  };
  for (const auto& [what, change] : changes) {
    step_collector c = collector();
    vote v = first_vote();
    change(v);
    EXPECT_THAT(refusal(c.add(m0, v)), AllOf(HasSubstr("step 5, member 0"), HasSubstr(what)));
    EXPECT_FALSE(take(c, m0, first_vote())) << "the right one may still come";
  }
}

TEST(step_collector, does_not_begin_with_a_plan_that_leaves_something_out) {
  plan p = three_members();
  p.placement.pop_back();
  EXPECT_DEATH(step_collector(p, {2, 1}), "do not cover");
  p = three_members();
  p.members[1].leaves = 0;
  EXPECT_DEATH(step_collector(p, {2, 1}), "do not cover");
}

TEST(step_collector, decides_nothing_before_all_votes_are_in) {
  step_collector c = collector();
  EXPECT_FALSE(take(c, m0, first_vote()));
  EXPECT_DEATH(c.decided(), "without all votes");
}

TEST(step_collector, calls_a_step_stable_when_all_holders_of_some_block_have_recorded_it) {
  step_collector c = collector();  // holders: {m0, m1} and {m1, m2}
  decide_next(c);
  EXPECT_EQ(c.recorded(m0, 5), std::nullopt);
  EXPECT_EQ(c.recorded(m2, 5), std::nullopt);
  EXPECT_EQ(c.recorded(m1, 5), 5u);
  EXPECT_EQ(c.stable(), 5u);
  EXPECT_EQ(c.recorded(m1, 5), std::nullopt) << "once";
}

TEST(step_collector, calls_a_step_stable_by_any_one_set_of_holders) {
  step_collector c = collector();
  decide_next(c);
  EXPECT_EQ(c.recorded(m2, 5), std::nullopt);
  EXPECT_EQ(c.recorded(m1, 5), 5u) << "by the holders of layer 1 alone";
  EXPECT_EQ(c.recorded(m0, 5), std::nullopt) << "stable before";
}

TEST(step_collector, takes_a_later_record_for_the_earlier_ones_too) {
  step_collector c = collector();
  decide_next(c);
  decide_next(c);
  EXPECT_EQ(c.recorded(m0, 6), std::nullopt);
  EXPECT_EQ(c.recorded(m1, 5), 5u);
  EXPECT_EQ(c.recorded(m1, 6), 6u);
  EXPECT_EQ(c.recorded(m1, 5), std::nullopt) << "never back";
  EXPECT_EQ(c.stable(), 6u);
}

TEST(step_collector, passes_over_records_of_strangers_and_of_steps_that_are_not_decided) {
  step_collector c = collector();
  decide_next(c);
  EXPECT_EQ(c.recorded(member_id(9), 5), std::nullopt);
  for (const member_id id : {m0, m1, m2}) {
    EXPECT_EQ(c.recorded(id, 6), std::nullopt);
    EXPECT_EQ(c.recorded(id, 1000000), std::nullopt);
  }
  EXPECT_EQ(c.stable(), 4u);
  EXPECT_EQ(c.recorded(m0, 5), std::nullopt);
  EXPECT_EQ(c.recorded(m1, 5), 5u) << "what was passed over changed nothing";
}

TEST(step_collector, of_a_member_alone_is_stable_by_its_own_record) {
  plan p;
  p.members.emplace_back().id = m0;
  p.members[0].leaves = 1;
  p.virtual_ranks = 1;
  p.placement = {{0, 0, 1, m0, {}}};
  step_collector c(p, {1});
  EXPECT_TRUE(
      take(c, m0, {.step = 1, .sums = {{{0, 0}, {}, 1}}, .losses = {{0, 1, 1}}, .facts = {}}));
  c.decided();
  EXPECT_EQ(c.recorded(m0, 1), 1u);
}

// Records arrive in any order; stable is what the plain rule says.
TEST(step_collector, agrees_with_the_plain_rule_of_stability_in_any_world) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    random_world random(seed);
    planner_input in = random.world();
    const plan p = make_plan(in);
    if (p.members.front().leaves == 0 && p.members.back().leaves == 0) continue;  // nobody computes
    std::vector<std::uint32_t> blocks;
    for (const auto& layer : in.layers) blocks.push_back(static_cast<std::uint32_t>(layer.size()));
    step_collector c(p, blocks);
    for (std::uint64_t step = 1; step <= 5; ++step) {
      for (const member_id id : c.waiting_for()) {
        vote v;
        v.step = step;
        for (const block_id b : blocks_primary(p, id)) v.sums.push_back({b, {}, 1});
        const plan_member& m = *p.find(id);
        for (std::uint32_t i = 0; i < m.leaves; ++i) v.losses.push_back({m.first_leaf + i, 1, 1});
        (void)take(c, id, v);
      }
      c.decided();
    }
    std::map<member_id, std::uint64_t> newest;
    std::uint64_t stable = 0;
    for (int i = 0; i < 100; ++i) {
      const member_id by = p.members[random.below(static_cast<std::uint32_t>(p.members.size()))].id;
      const std::uint64_t step = random.below(7);
      const std::optional<std::uint64_t> told = c.recorded(by, step);
      if (step <= 5) newest[by] = std::max(newest[by], step);
      std::uint64_t now_stable = 0;
      for (const placed_blocks& part : p.placement) {
        std::uint64_t least = newest[part.primary];
        for (const member_id id : part.backups) least = std::min(least, newest[id]);
        now_stable = std::max(now_stable, least);
      }
      EXPECT_EQ(c.stable(), now_stable);
      EXPECT_EQ(told, now_stable > stable ? std::optional(now_stable) : std::nullopt);
      stable = now_stable;
    }
  }
}

}  // namespace
}  // namespace troupe::actors::protocol
