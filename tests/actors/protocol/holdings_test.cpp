#include "actors/protocol/holdings.hpp"

#include <gmock/gmock.h>

namespace troupe::actors::protocol {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr block_id first{0, 0}, second{0, 1}, third{2, 0};

// Everything at version 4, without a gradient.
holdings usual() {
  holdings h;
  for (const block_id block : {third, first, second}) h.have(block, 4);
  return h;
}

TEST(holdings, of_a_newcomer_are_nothing) {
  const holdings none;
  EXPECT_FALSE(none.has(first));
  EXPECT_EQ(none.version_of(first), std::nullopt);
  EXPECT_FALSE(none.has_next_sum(first));
  EXPECT_TRUE(none.still());
  EXPECT_THAT(none.facts(), IsEmpty());
}

TEST(holdings, are_told_block_by_block_in_order) {
  holdings h = usual();
  h.sum_held(second, 5);
  EXPECT_THAT(h.facts(),
              ElementsAre(held_fact{first, 4, false, false}, held_fact{second, 4, true, false},
                          held_fact{third, 4, false, false}));
}

TEST(holdings, go_one_version_on_by_an_update_that_began_and_ended) {
  holdings h = usual();
  h.sum_held(first, 5);
  EXPECT_TRUE(h.has_next_sum(first));
  h.applying(first);
  EXPECT_FALSE(h.still());
  EXPECT_EQ(h.version_of(first), 4u) << "not before it has ended";
  h.applied(first, 5);
  EXPECT_TRUE(h.still());
  EXPECT_EQ(h.version_of(first), 5u);
  EXPECT_FALSE(h.has_next_sum(first)) << "that sum is used up";
}

TEST(holdings, count_a_sum_that_came_early_once_the_block_has_got_there) {
  holdings h = usual();
  h.sum_held(first, 5);
  h.applying(first);
  h.sum_held(first, 6);
  EXPECT_TRUE(h.has_next_sum(first));
  h.applied(first, 5);
  EXPECT_TRUE(h.has_next_sum(first));
}

TEST(holdings, take_no_sum_of_a_step_that_is_done_for_the_next_one) {
  holdings h = usual();
  h.sum_held(first, 4);
  EXPECT_FALSE(h.has_next_sum(first));
  h.sum_held(third, 5);
  h.sum_held(third, 4);
  EXPECT_TRUE(h.has_next_sum(third)) << "an older one takes nothing away";
}

// Rule 8: what was computed for steps that are done again is dropped, but not the gradient that
// leads to the base.
TEST(holdings, forget_gradients_of_steps_that_are_done_again_and_keep_that_of_the_base) {
  holdings h = usual();
  h.sum_held(first, 5);
  h.sum_held(second, 5);
  h.sum_held(second, 6);
  h.drop_sums_after(5);
  EXPECT_TRUE(h.has_next_sum(first));
  EXPECT_TRUE(h.has_next_sum(second));
  h.applying(second);
  h.applied(second, 5);
  EXPECT_FALSE(h.has_next_sum(second)) << "step 6 is done again";
  h.drop_sums_after(4);
  EXPECT_FALSE(h.has_next_sum(first));
}

// H-11.
TEST(holdings, lose_a_block_whose_update_failed_and_never_offer_it_again) {
  holdings h = usual();
  h.sum_held(first, 5);
  h.applying(first);
  h.torn(first);
  EXPECT_TRUE(h.still());
  EXPECT_EQ(h.version_of(first), std::nullopt);
  EXPECT_FALSE(h.has_next_sum(first));
  h.sum_held(first, 6);
  EXPECT_FALSE(h.has_next_sum(first)) << "a gradient makes it no better";
  EXPECT_THAT(h.facts().front(), (held_fact{first, 4, false, true}));
  EXPECT_DEATH(h.applying(first), "after it was lost");
  h.have(first, 7);  // a whole copy does
  EXPECT_EQ(h.version_of(first), 7u);
  EXPECT_FALSE(h.facts().front().lost);
}

TEST(holdings, of_a_copy_know_nothing_of_the_sums_before_it) {
  holdings h = usual();
  h.sum_held(first, 5);
  h.have(first, 4);
  EXPECT_FALSE(h.has_next_sum(first));
}

TEST(holdings, are_given_up_where_the_plan_lists_others) {
  holdings h = usual();
  h.keep_only({first, {1, 7}});
  EXPECT_TRUE(h.has(first));
  EXPECT_FALSE(h.has(second));
  EXPECT_FALSE(h.has(third));
  EXPECT_FALSE(h.has({1, 7})) << "nothing is held because somebody wishes it";
}

TEST(holdings, ignore_sums_of_blocks_that_are_not_here) {
  holdings h;
  h.sum_held(first, 1);
  EXPECT_THAT(h.facts(), IsEmpty());
}

TEST(holdings, are_neither_replaced_nor_given_up_in_the_middle_of_an_update) {
  holdings h = usual();
  h.applying(first);
  EXPECT_DEATH(h.have(first, 9), "while it was updated");
  EXPECT_DEATH(h.keep_only({}), "while one is updated");
  EXPECT_DEATH(h.applying(first), "twice at a time");
}

TEST(holdings, end_no_update_that_did_not_begin_and_skip_no_version) {
  holdings h = usual();
  EXPECT_DEATH(h.applied(first, 5), "not begun");
  EXPECT_DEATH(h.torn(first), "not begun");
  h.applying(first);
  EXPECT_DEATH(h.applied(first, 6), "not begun");
}

}  // namespace
}  // namespace troupe::actors::protocol
