#include "actors/protocol/member_step.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

namespace troupe::actors::protocol {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

block_sum sum_of(std::uint32_t layer, std::uint32_t block) {
  return {{layer, block}, {layer, block}, layer + block / 16.0};
}
leaf_loss loss_of(std::uint32_t leaf) { return {leaf, leaf + 0.5, 3}; }

template <class T>
std::string refusal(const result<T>& r) {
  if (r) return "it was taken";
  EXPECT_EQ(r.failure().code, exit_code::defect);
  return r.failure().message;
}

// Layers of two blocks and of one; primary of two blocks; virtual ranks 3 and 4; at version 6.
member_step usual() { return {{2, 1}, 2, 3, 2, 6}; }
void vote_in(member_step& m) {
  ASSERT_TRUE(m.block_ready(7, sum_of(0, 0)));
  ASSERT_TRUE(m.block_ready(7, sum_of(1, 0)));
  const auto voted = m.computed(7, {loss_of(3), loss_of(4)});
  ASSERT_TRUE(voted && voted->has_value());
}

TEST(member_step, begins_with_all_layers_open) {
  const member_step m = usual();
  EXPECT_EQ(m.step(), 7u);
  EXPECT_TRUE(m.votes());
  EXPECT_THAT(m.open_layers(), ElementsAre(0, 1));
}

TEST(member_step, votes_once_all_its_blocks_are_ready_and_its_losses_known_in_any_order) {
  std::vector<int> order{0, 1, 2};
  do {
    member_step m = usual();
    std::optional<vote> complete;
    for (const int i : order) {
      ASSERT_FALSE(complete.has_value());
      auto r = i == 0   ? m.block_ready(7, sum_of(1, 0))
               : i == 1 ? m.block_ready(7, sum_of(0, 1))
                        : m.computed(7, {loss_of(4), loss_of(3)});
      ASSERT_TRUE(r) << refusal(r);
      complete = *r;
    }
    ASSERT_TRUE(complete.has_value());
    EXPECT_EQ(complete->step, 7u);
    EXPECT_THAT(complete->sums, ElementsAre(sum_of(0, 1), sum_of(1, 0)));
    EXPECT_THAT(complete->losses, ElementsAre(loss_of(3), loss_of(4)));
  } while (std::ranges::next_permutation(order).found);
}

TEST(member_step, of_a_spare_without_blocks_has_no_vote_and_follows_the_decisions) {
  member_step m({1}, 0, 0, 0, 0);
  EXPECT_FALSE(m.votes());
  EXPECT_TRUE(m.decided(1));
  EXPECT_TRUE(m.decided(2));
  EXPECT_EQ(m.step(), 3u);
}

TEST(member_step,
     votes_without_losses_where_it_computes_nothing_and_without_sums_where_it_is_no_primary) {
  member_step holder({1}, 1, 0, 0, 0);
  const auto first = holder.block_ready(1, sum_of(0, 0));
  ASSERT_TRUE(first && first->has_value());
  EXPECT_THAT((*first)->losses, IsEmpty());
  member_step computer({1}, 0, 0, 1, 0);
  const auto second = computer.computed(1, {loss_of(0)});
  ASSERT_TRUE(second && second->has_value());
  EXPECT_THAT((*second)->sums, IsEmpty());
}

TEST(member_step, refuses_a_block_of_another_step_twice_or_after_its_vote) {
  member_step m = usual();
  EXPECT_FALSE(m.block_ready(6, sum_of(0, 0)));
  EXPECT_FALSE(m.block_ready(8, sum_of(0, 0)));
  ASSERT_TRUE(m.block_ready(7, sum_of(0, 0)));
  EXPECT_THAT(refusal(m.block_ready(7, sum_of(0, 0))),
              HasSubstr("step 7: block 0 of layer 0 was ready twice"));
  member_step voted = usual();
  vote_in(voted);
  EXPECT_THAT(refusal(voted.block_ready(7, sum_of(0, 1))), HasSubstr("voted"));
}

TEST(member_step, refuses_losses_of_other_virtual_ranks_of_another_step_or_twice) {
  member_step m = usual();
  EXPECT_FALSE(m.computed(6, {loss_of(3), loss_of(4)}));
  EXPECT_THAT(refusal(m.computed(7, {loss_of(3)})), HasSubstr("do not cover"));
  EXPECT_FALSE(m.computed(7, {loss_of(3), loss_of(5)}));
  EXPECT_FALSE(m.computed(7, {loss_of(3), loss_of(3)}));
  EXPECT_FALSE(m.computed(7, {loss_of(2), loss_of(3)}));
  EXPECT_FALSE(m.computed(7, {loss_of(3), loss_of(4), loss_of(5)}));
  ASSERT_TRUE(m.computed(7, {loss_of(3), loss_of(4)}));
  EXPECT_THAT(refusal(m.computed(7, {loss_of(3), loss_of(4)})), HasSubstr("step 7"));
}

TEST(member_step, takes_losses_that_are_no_numbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  member_step m({1}, 0, 0, 2, 0);
  const auto voted = m.computed(1, {{1, nan, 1}, {0, 1, nan}});
  ASSERT_TRUE(voted && voted->has_value());
  EXPECT_TRUE(std::isnan((*voted)->losses.at(1).loss_sum));
}

TEST(member_step, refuses_a_decision_of_another_step_or_before_its_vote) {
  member_step m = usual();
  EXPECT_THAT(refusal(m.decided(7)), HasSubstr("before this member's vote"));
  vote_in(m);
  EXPECT_THAT(refusal(m.decided(8)), HasSubstr("while step 7 is done"));
  EXPECT_FALSE(m.decided(6));
  EXPECT_TRUE(m.decided(7));
  EXPECT_FALSE(m.decided(7)) << "twice";
}

TEST(member_step, opens_a_layer_when_the_last_of_its_blocks_is_at_the_new_version) {
  member_step m = usual();
  vote_in(m);
  ASSERT_TRUE(m.decided(7));
  EXPECT_THAT(m.open_layers(), IsEmpty());
  EXPECT_EQ(*m.block_at({0, 1}, 7), std::nullopt);
  EXPECT_EQ(*m.block_at({1, 0}, 7), 1u);
  EXPECT_THAT(m.open_layers(), ElementsAre(1));
  EXPECT_EQ(*m.block_at({0, 0}, 7), 0u);
  EXPECT_THAT(m.open_layers(), ElementsAre(0, 1));
}

TEST(member_step, refuses_a_block_at_another_version_twice_or_of_no_layer) {
  member_step m = usual();
  EXPECT_THAT(refusal(m.block_at({0, 0}, 6)), HasSubstr("twice")) << "all began at version 6";
  vote_in(m);
  ASSERT_TRUE(m.decided(7));
  EXPECT_THAT(refusal(m.block_at({0, 0}, 6)), HasSubstr("version 6"));
  EXPECT_FALSE(m.block_at({0, 0}, 8));
  ASSERT_TRUE(m.block_at({0, 0}, 7));
  EXPECT_THAT(refusal(m.block_at({0, 0}, 7)), HasSubstr("block 0 of layer 0"))
      << "the same block twice does not open the layer";
  EXPECT_FALSE(m.block_at({0, 2}, 7));
  EXPECT_FALSE(m.block_at({2, 0}, 7));
  EXPECT_THAT(m.open_layers(), IsEmpty());
}

// H-08: a layer stays shut until all of its parameters are at the plan's base.
TEST(member_step, that_lacks_parameters_opens_a_layer_as_they_come) {
  member_step m = usual();
  m.lacks({{0, 1}, {1, 0}});
  EXPECT_THAT(m.open_layers(), IsEmpty());
  EXPECT_TRUE(m.has({0, 0}));
  EXPECT_FALSE(m.has({0, 1}));
  EXPECT_FALSE(m.has({1, 0}));
  EXPECT_FALSE(m.block_at({0, 0}, 6)) << "it was here";
  EXPECT_FALSE(m.block_at({0, 1}, 5)) << "of the version before";
  EXPECT_FALSE(m.block_at({0, 1}, 7));
  EXPECT_EQ(*m.block_at({0, 1}, 6), 0u);
  EXPECT_TRUE(m.has({0, 1}));
  EXPECT_EQ(*m.block_at({1, 0}, 6), 1u);
  EXPECT_THAT(m.open_layers(), ElementsAre(0, 1));
}

TEST(member_step, has_the_blocks_of_the_step_that_it_does_and_of_no_other) {
  member_step m = usual();
  EXPECT_TRUE(m.has({0, 0}));
  vote_in(m);
  ASSERT_TRUE(m.decided(7));
  EXPECT_FALSE(m.has({0, 0}));
  ASSERT_TRUE(m.block_at({0, 0}, 7));
  EXPECT_TRUE(m.has({0, 0}));
}

// Any events against a model that keeps plain sets: what is taken, and what follows from it.
TEST(member_step, agrees_with_a_plain_model_whatever_happens) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const std::vector<std::uint32_t> layers{1 + below(3), 1 + below(3)};
    const std::size_t primaries = below(3);
    const std::uint32_t leaves = below(3);
    member_step m(layers, primaries, 1, leaves, 0);
    std::uint64_t step = 1;
    std::set<block_id> here, ready;
    for (std::uint32_t l = 0; l < 2; ++l) {
      for (std::uint32_t b = 0; b < layers[l]; ++b) here.insert({l, b});
    }
    bool losses = false;
    const auto complete = [&] { return ready.size() == primaries && (leaves == 0 || losses); };
    const auto has_vote = [&] { return primaries > 0 || leaves > 0; };
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t of = step + below(8) / 7;
      const block_id block{below(2), below(3)};
      switch (below(4)) {
        case 0: {
          const bool fits = of == step && !(has_vote() && complete()) && ready.size() < primaries &&
                            !ready.contains(block);
          if (!fits && of == step && !ready.contains(block) && !complete()) break;  // no such block
          if (!fits && !has_vote()) break;
          const auto r = m.block_ready(of, {block, {}, 0});
          ASSERT_EQ(static_cast<bool>(r), fits);
          if (!fits) break;
          ready.insert(block);
          ASSERT_EQ(r->has_value(), complete());
          break;
        }
        case 1: {
          if (leaves == 0) break;
          const bool fits = of == step && !losses;
          std::vector<leaf_loss> all;
          for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) all.push_back(loss_of(1 + leaf));
          const auto r = m.computed(of, all);
          ASSERT_EQ(static_cast<bool>(r), fits);
          if (!fits) break;
          losses = true;
          ASSERT_EQ(r->has_value(), complete());
          break;
        }
        case 2: {
          const bool fits = of == step && (!has_vote() || complete());
          ASSERT_EQ(static_cast<bool>(m.decided(of)), fits);
          if (!fits) break;
          ++step;
          here.clear();
          ready.clear();
          losses = false;
          break;
        }
        case 3: {
          const bool fits =
              of == step && block.block < layers[block.layer] && !here.contains(block);
          const auto r = m.block_at(block, of - 1);
          ASSERT_EQ(static_cast<bool>(r), fits);
          if (!fits) break;
          here.insert(block);
          std::uint32_t there = 0;
          for (const block_id h : here) there += h.layer == block.layer ? 1 : 0;
          ASSERT_EQ(r->has_value(), there == layers[block.layer]);
          break;
        }
      }
      ASSERT_EQ(m.step(), step);
    }
  }
}

}  // namespace
}  // namespace troupe::actors::protocol
