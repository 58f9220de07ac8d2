// The shortest interleavings that a careless version of the protocol gets wrong, and the wrong
// readings of its rules, as far as one collection shows them. tests/actors/sim/elastic_traces_test
// has whole worlds in them.
#include <gmock/gmock.h>

#include "tests/actors/protocol/collected_world.hpp"

namespace troupe::actors::protocol {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class collection_traces : public collection_test {};

// --- traces ---

// H-01, H-02, H-03. T1, two plans with one number: m0 and m3 collect at a time, and each has a half
// that holds every block. Both make plan 4; that only one of them exists is the chain's part. Each
// names whoever it has heard of and nobody else, so whoever obeys the winner finds itself or not.
TEST_F(collection_traces, trace_1_two_halves_each_make_a_plan_of_their_own_members_only) {
  present.placement.clear();
  for (std::uint32_t layer = 0; layer < 2; ++layer) {
    present.placement.push_back({layer, 0, 2, m0, {m1}});
    present.placement.push_back({layer, 2, 2, m2, {m3}});
  }
  const auto half = [&](member_id who, member_id other) {
    collection c(present);
    c.answered(who, answer(who));
    c.answered(other, answer(other));
    c.too_slow();
    settings.coordinator = who;
    const auto one = next_plan(c, present, {}, settings);
    EXPECT_TRUE(std::holds_alternative<plan>(one));
    return std::get<plan>(one);
  };
  const plan a = half(m0, m2), b = half(m3, m1);
  EXPECT_THAT(members_of(a), ElementsAre(m0, m2));
  EXPECT_THAT(members_of(b), ElementsAre(m1, m3));
  EXPECT_EQ(a.number, b.number);
  EXPECT_EQ(a.parent, b.parent);
}

// H-08. T2, mixed parameters: m0 decided, m2 saw it, applied and sent its parameters to m1. m1 has
// thereby seen the record, so that a collection without m0 and m2 goes on from it, and does not do
// the step again on mixed parameters.
TEST_F(collection_traces, trace_2_who_has_parameters_of_a_step_makes_it_the_base) {
  all->answered(m1, answer(m1, base + 1, base, true));
  all->answered(m3, answer(m3, base, base, true));
  all->answered(m0, answer(m0, base, base, true));
  all->gone(m2, false);
  EXPECT_EQ(all->base(), base + 1);
  EXPECT_THAT(all->uncovered(), IsEmpty()) << "the gradients that lead there are held";
  EXPECT_EQ(published().base, base + 1);
}

// H-07, H-18. T3, the gradient is gone: m3 was too late for plan 4, which committed a step. In
// plan 3 it still counts itself as a holder; but whoever collects for plan 4 again asks members
// that have promised more, and one at base + 1 shows that m3's block is behind.
TEST_F(collection_traces, trace_3_a_block_that_missed_a_step_does_not_count) {
  const placed_blocks& part = present.holders_of({0, 0});
  const member_id late = part.primary;
  for (const member_id id : {m0, m1, m2, m3}) {
    if (id == part.backups.front()) continue;
    all->answered(id, id == late ? answer(id, base, base, false) : answer(id, base + 1));
  }
  EXPECT_EQ(all->base(), base + 1);
  EXPECT_FALSE(all->can_hold(late, {0, 0}));
  EXPECT_THAT(all->uncovered(), Contains(block_id{0, 0}));
  EXPECT_THAT(all->lost(), IsEmpty());
  EXPECT_TRUE(std::holds_alternative<std::vector<block_id>>(made()));
}

// H-19, H-31. T4, a needless rollback: m2 collects and hears nobody in time.
TEST_F(collection_traces, trace_4_who_hears_nobody_publishes_nothing_and_holds_nothing_for_lost) {
  all->answered(m2, answer(m2));
  all->too_slow();
  EXPECT_THAT(all->waiting_for(), IsEmpty());
  EXPECT_TRUE(std::holds_alternative<std::vector<block_id>>(made()));
  EXPECT_THAT(all->lost(), IsEmpty());
  for (const member_id id : {m0, m1, m3}) all->answered(id, answer(id));
  EXPECT_THAT(members_of(published()), ElementsAre(m0, m1, m2, m3)) << "it goes on by itself";
}

// T5, announced and then done again: a step is announced when all holders of one block have
// recorded it, and whoever collects meets one of them, whatever the rest have seen.
TEST_F(collection_traces,
       trace_5_no_covered_collection_misses_what_all_holders_of_a_block_recorded) {
  for (const block_id stable : blocks()) {
    for (unsigned who = 0; who < 16; ++who) {
      collection c(present);
      for (unsigned i = 0; i < 4; ++i) {
        if ((who >> i & 1) == 0) continue;
        const member_id id(i);
        const std::uint64_t seen = holds(present, id, stable) ? base + 1 : base;
        c.answered(id, answer(id, seen, base, true));
      }
      if (c.uncovered().empty()) {
        EXPECT_EQ(c.base(), base + 1);
      }
    }
  }
}

// --- wrong readings ---

TEST_F(collection_traces, wrong_reading_members_that_did_not_promise_are_not_listed) {
  for (const member_id id : {m0, m1, m2}) all->answered(id, answer(id));
  EXPECT_THAT(members_of(published()), ElementsAre(m0, m1, m2)) << "m3 lives, and must come again";
}

TEST_F(collection_traces, wrong_reading_who_has_not_adopted_the_present_plan_covers_nothing) {
  for (const member_id id : {m0, m1, m2, m3}) {
    promise p = answer(id);
    p.of_plan = false;
    all->answered(id, p);
  }
  EXPECT_THAT(all->uncovered(), SizeIs(8));
}

// Its holder is none of the plan's, so it may not know of a record that they have all seen.
TEST_F(collection_traces, wrong_reading_a_copy_that_no_plan_counts_covers_nothing) {
  const placed_blocks& part = present.holders_of({0, 0});
  for (const member_id id : {m0, m1, m2, m3}) {
    if (id == part.primary || id == part.backups.front()) continue;
    promise p = answer(id);
    p.blocks.push_back({{0, 0}, base, false, false});
    all->answered(id, p);
    EXPECT_TRUE(all->can_hold(id, {0, 0})) << "once the block is covered, it may hold it";
  }
  EXPECT_THAT(all->uncovered(), Contains(block_id{0, 0}));
}

TEST_F(collection_traces, wrong_reading_the_first_cover_is_not_enough_to_stop_waiting) {
  for (const member_id id : {m0, m1, m2}) all->answered(id, answer(id));
  EXPECT_THAT(all->uncovered(), IsEmpty());
  EXPECT_THAT(all->waiting_for(), ElementsAre(m3));
}

TEST_F(collection_traces, wrong_reading_a_newcomer_that_has_not_promised_is_waited_for) {
  for (const member_id id : {m0, m1, m2, m3}) all->answered(id, answer(id));
  all->newcomer(somebody(newcomer));
  EXPECT_THAT(all->waiting_for(), ElementsAre(newcomer));
  all->gone(newcomer, false);
  EXPECT_THAT(all->waiting_for(), IsEmpty());
}

}  // namespace
}  // namespace troupe::actors::protocol
