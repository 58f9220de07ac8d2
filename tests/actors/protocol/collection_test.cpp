// Promises and what follows from them: how far the world is, whether it can go on, and with whom.
#include "actors/protocol/collection.hpp"

#include <gmock/gmock.h>

#include <map>

#include "tests/actors/protocol/collected_world.hpp"

namespace troupe::actors::protocol {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// --- for whom it waits ---

TEST_F(collection_test, asks_for_the_number_after_the_present_plan) {
  EXPECT_EQ(all->next(), generation(4));
}

TEST_F(collection_test, waits_for_everybody_who_is_not_known_to_be_gone) {
  EXPECT_THAT(all->waiting_for(), ElementsAre(m0, m1, m2, m3));
  all->answered(m2, answer(m2));
  all->gone(m1, false);
  EXPECT_THAT(all->waiting_for(), ElementsAre(m0, m3));
  all->newcomer(somebody(newcomer));
  EXPECT_THAT(all->waiting_for(), ElementsAre(m0, m3, newcomer));
  all->answered(newcomer, anew());
  EXPECT_THAT(all->waiting_for(), ElementsAre(m0, m3));
}

TEST_F(collection_test, waits_no_longer_than_it_is_told_but_takes_late_answers) {
  all->answered(m0, answer(m0));
  all->too_slow();
  EXPECT_THAT(all->waiting_for(), IsEmpty());
  EXPECT_FALSE(all->has_answered(m3));
  all->answered(m3, answer(m3));
  EXPECT_TRUE(all->has_answered(m3));
}

TEST_F(collection_test, takes_no_promise_of_another_number_from_a_stranger_or_from_the_dead) {
  promise other = answer(m1);
  other.next = generation(5);
  all->answered(m1, other);
  other.next = generation(3);
  all->answered(m1, other);
  EXPECT_FALSE(all->has_answered(m1));
  all->answered(newcomer, anew());
  EXPECT_FALSE(all->has_answered(newcomer)) << "nobody asked it";
  all->gone(m1, true);
  all->answered(m1, answer(m1));
  EXPECT_FALSE(all->has_answered(m1));
}

TEST_F(collection_test, takes_one_back_that_was_only_out_of_reach) {
  all->gone(m1, false);
  EXPECT_THAT(all->waiting_for(), ElementsAre(m0, m2, m3));
  all->answered(m1, answer(m1));
  EXPECT_TRUE(all->has_answered(m1));
  for (const member_id id : {m0, m2, m3}) all->answered(id, answer(id));
  EXPECT_THAT(members_of(published()), ElementsAre(m0, m1, m2, m3));
}

// H-06: neither the process that was there before, nor the one that came and went.
TEST_F(collection_test, takes_no_late_promise_in_a_slot_whose_newcomer_is_gone_again) {
  for (const member_id id : {m0, m1, m2}) all->answered(id, answer(id));
  all->newcomer(somebody(m3, 2));
  all->answered(m3, answer(m3));
  EXPECT_FALSE(all->has_answered(m3)) << "of the first life";
  all->gone(m3, false);
  all->answered(m3, answer(m3));
  all->answered(m3, anew());
  EXPECT_FALSE(all->has_answered(m3));
  EXPECT_THAT(members_of(published()), ElementsAre(m0, m1, m2));
  all->newcomer(somebody(m3, 2));
  all->answered(m3, anew());
  EXPECT_TRUE(all->has_answered(m3)) << "it has come again";
}

TEST_F(collection_test, forgets_the_promise_of_one_who_is_gone_after_it) {
  all->answered(m1, answer(m1, base + 1));
  EXPECT_EQ(all->base(), base + 1);
  all->gone(m1, true);
  EXPECT_EQ(all->base(), base);
  EXPECT_FALSE(all->can_hold(m1, held_by(m1).front()));
}

// --- base ---

// H-08, H-12: one who has seen the record is enough, whoever it is.
TEST_F(collection_test, goes_on_from_the_highest_record_that_anybody_has_seen) {
  EXPECT_EQ(all->base(), base) << "nobody has answered: the plan's own";
  all->answered(m0, answer(m0, base));
  all->answered(m1, answer(m1, base + 1));
  EXPECT_EQ(all->base(), base + 1);
}

TEST_F(collection_test, counts_what_a_newcomer_has_seen) {
  all->newcomer(somebody(newcomer));
  promise p = anew();
  p.seen = base + 1;
  p.records = {notice_of(base + 1)};
  all->answered(newcomer, p);
  EXPECT_EQ(all->base(), base + 1);
}

TEST_F(collection_test, never_goes_back_behind_the_present_plan) {
  all->answered(m0, answer(m0, base - 3));
  EXPECT_EQ(all->base(), base);
}

// --- cover ---

TEST_F(collection_test, is_covered_by_half_of_the_members_if_they_hold_every_block) {
  EXPECT_THAT(all->uncovered(), SizeIs(8));
  for (const member_id id : {m0, m1, m2, m3}) {
    all->answered(id, answer(id));
    // As the plan says it, block by block.
    std::vector<block_id> missing;
    for (const block_id b : blocks()) {
      const placed_blocks& part = present.holders_of(b);
      const auto there = [&](member_id h) { return all->has_answered(h); };
      if (!there(part.primary) && std::ranges::none_of(part.backups, there)) missing.push_back(b);
    }
    EXPECT_EQ(all->uncovered(), missing);
  }
  EXPECT_THAT(all->uncovered(), IsEmpty());
}

TEST_F(collection_test, counts_a_holder_at_base_or_one_before_with_the_gradient_and_no_other) {
  const block_id block = held_by(m1).front();
  const auto can = [&](std::uint64_t seen, std::uint64_t version, bool next_sum) {
    collection c(present);
    promise p = answer(m1, seen);
    p.blocks = {{block, version, next_sum, false}};
    c.answered(m1, p);
    return c.can_hold(m1, block);
  };
  EXPECT_TRUE(can(11, 11, false));
  EXPECT_TRUE(can(11, 11, true));
  EXPECT_TRUE(can(11, 10, true));
  EXPECT_FALSE(can(11, 10, false));
  EXPECT_FALSE(can(11, 9, true));
  EXPECT_FALSE(can(11, 12, true)) << "of steps that nobody has seen decided";
}

// H-11.
TEST_F(collection_test, counts_no_block_whose_update_failed) {
  for (const member_id id : {m0, m1, m2, m3}) all->answered(id, answer(id));
  promise torn = answer(m2);
  for (held_fact& f : torn.blocks) f.lost = true;
  all->answered(m2, torn);
  for (const block_id b : held_by(m2)) EXPECT_FALSE(all->can_hold(m2, b));
  EXPECT_THAT(all->uncovered(), IsEmpty()) << "the other holders have them";
  const plan next = published();
  EXPECT_THAT(members_of(next), ElementsAre(m0, m1, m2, m3));
  for (const block_id b : held_by(m2)) EXPECT_FALSE(holds(next, m2, b));
}

TEST_F(collection_test, finds_facts_in_whatever_order_they_come) {
  promise p = answer(m1);
  std::ranges::reverse(p.blocks);
  all->answered(m1, p);
  for (const block_id b : held_by(m1)) EXPECT_TRUE(all->can_hold(m1, b));
}

// --- lost for good ---

TEST_F(collection_test, holds_a_block_for_lost_only_if_all_its_holders_are_proven_gone) {
  const placed_blocks& part = present.holders_of({0, 0});
  const member_id a = part.primary, b = part.backups.front();
  for (const member_id id : {m0, m1, m2, m3}) {
    if (id != a && id != b) all->answered(id, answer(id));
  }
  EXPECT_THAT(all->uncovered(), Contains(block_id{0, 0}));
  EXPECT_THAT(all->lost(), IsEmpty()) << "they have only not answered yet";
  all->gone(a, true);
  EXPECT_THAT(all->lost(), IsEmpty());
  all->gone(b, false);
  EXPECT_THAT(all->lost(), IsEmpty()) << "it may only be cut off";  // H-19
  all->gone(b, true);
  EXPECT_THAT(all->lost(), Contains(block_id{0, 0}));
  for (const block_id block : all->lost()) {
    EXPECT_TRUE(std::ranges::count(held_by(a), block) == 1 &&
                std::ranges::count(held_by(b), block) == 1);
  }
}

TEST_F(collection_test, forgets_no_proof_when_a_link_to_the_dead_is_lost_after_it) {
  const placed_blocks& part = present.holders_of({0, 0});
  for (const member_id id : {part.primary, part.backups.front()}) {
    all->gone(id, true);
    all->gone(id, false);
  }
  EXPECT_THAT(all->lost(), Contains(block_id{0, 0}));
}

TEST_F(collection_test, takes_a_living_holder_that_has_lost_the_block_for_a_proof) {
  const placed_blocks& part = present.holders_of({0, 0});
  all->gone(part.primary, true);
  promise torn = answer(part.backups.front());
  for (held_fact& f : torn.blocks) f.lost = f.block == block_id{0, 0};
  all->answered(part.backups.front(), torn);
  EXPECT_THAT(all->lost(), Contains(block_id{0, 0}));
}

// H-06: the new process starts empty, and that it exists proves that the old one is no more.
TEST_F(collection_test, counts_nothing_that_the_earlier_process_in_a_newcomers_slot_held) {
  const placed_blocks& part = present.holders_of({0, 0});
  const member_id a = part.primary, b = part.backups.front();
  all->answered(a, answer(a));  // of the old life
  all->newcomer(somebody(a, 2));
  EXPECT_FALSE(all->has_answered(a)) << "the old promise is not the new one's";
  all->answered(a, anew());
  all->gone(b, true);
  EXPECT_THAT(all->uncovered(), Contains(block_id{0, 0}));
  EXPECT_THAT(all->lost(), Contains(block_id{0, 0}));
}

TEST_F(collection_test, remembers_that_a_holder_is_no_more_when_the_newcomer_in_its_slot_goes) {
  const placed_blocks& part = present.holders_of({0, 0});
  all->newcomer(somebody(part.primary, 2));
  all->gone(part.primary, false);  // only the newcomer's line
  all->gone(part.backups.front(), true);
  EXPECT_THAT(all->lost(), Contains(block_id{0, 0}));
}

// --- records ---

TEST_F(collection_test, carries_all_records_up_to_base_whose_lines_may_be_missing) {
  promise p = answer(m0, 13, 13);
  p.records = {notice_of(11, 9), notice_of(12, 10), notice_of(13, 10)};
  all->answered(m0, p);
  all->answered(m1, answer(m1, 12));
  EXPECT_EQ(all->base(), 13u);
  const auto records = all->records();
  ASSERT_THAT(records, SizeIs(3));  // the line of step 10 stands
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(records[i].record, notice_of(11 + i).record);
}

TEST_F(collection_test, carries_the_record_of_base_even_if_its_line_stands) {
  promise p = answer(m0, 11);
  p.records = {notice_of(11, 11)};
  all->answered(m0, p);
  ASSERT_THAT(all->records(), SizeIs(1));
  EXPECT_EQ(all->records().front().record.step, 11u);
}

TEST_F(collection_test, carries_records_without_a_gap) {
  promise p = answer(m0, 13);
  p.records = {notice_of(13)};  // 11 and 12 are nobody's any more
  all->answered(m0, p);
  ASSERT_THAT(all->records(), SizeIs(1));
  EXPECT_EQ(all->records().front().record.step, 13u);
}

// Whoever saw more and was then found to be gone leaves no record behind.
TEST_F(collection_test, carries_no_record_above_base) {
  all->answered(m1, answer(m1, base));
  promise p = answer(m0, base);
  p.records.push_back(notice_of(base + 1));
  all->answered(m0, p);
  ASSERT_THAT(all->records(), SizeIs(1));
  EXPECT_EQ(all->records().front().record.step, base);
}

TEST_F(collection_test, carries_no_record_as_the_last_of_a_plan_that_is_over) {
  promise p = answer(m0, 11);
  p.records.back().last = true;
  all->answered(m0, p);
  for (const record_notice& n : all->records()) EXPECT_FALSE(n.last);
}

TEST_F(collection_test, of_a_plan_that_starts_a_run_has_no_records) {
  present.records.clear();
  collection c(present);
  promise p = answer(m0);
  p.records.clear();
  c.answered(m0, p);
  EXPECT_THAT(c.records(), IsEmpty());
}

// --- the next plan ---

TEST_F(collection_test, makes_a_plan_that_follows_the_present_one) {
  for (const member_id id : {m0, m1, m2, m3}) all->answered(id, answer(id, 11));
  const plan next = published();
  EXPECT_EQ(next.number, generation(4));
  EXPECT_EQ(next.parent, "hash of plan 3");
  EXPECT_EQ(next.base, 11u);
  EXPECT_EQ(next.verdict, "change");
  EXPECT_EQ(next.coordinator, m0);
  EXPECT_EQ(next.run_id, present.run_id);
  EXPECT_EQ(next.virtual_ranks, present.virtual_ranks);
  EXPECT_EQ(next.records.back().record.step, 11u);
  EXPECT_EQ(next.members, present.members);
  EXPECT_EQ(next.placement, present.placement) << "nothing has changed";
}

TEST_F(collection_test, lists_a_newcomer_once_it_has_promised_and_gives_it_no_block) {
  for (const member_id id : {m0, m1, m2, m3}) all->answered(id, answer(id));
  all->newcomer(somebody(newcomer));
  EXPECT_THAT(members_of(published({somebody(newcomer)})), Not(Contains(newcomer)));
  all->answered(newcomer, anew());
  const plan next = published({somebody(newcomer)});
  ASSERT_NE(next.find(newcomer), nullptr);
  EXPECT_GT(next.find(newcomer)->leaves, 0u) << "it computes at once";
  for (const block_id b : blocks()) EXPECT_FALSE(holds(next, newcomer, b));
}

TEST_F(collection_test, lists_the_new_process_of_a_slot_and_not_the_old_one) {
  for (const member_id id : {m0, m1, m2}) all->answered(id, answer(id));
  all->newcomer(somebody(m3, 2));
  all->answered(m3, anew());
  const plan next = published({somebody(m3, 2)});
  ASSERT_NE(next.find(m3), nullptr);
  EXPECT_EQ(next.find(m3)->life, incarnation(2));
  for (const block_id b : blocks()) EXPECT_FALSE(holds(next, m3, b));
}

// H-20: after the copies, the holders are those that were aimed at.
TEST_F(collection_test, makes_a_holder_of_whoever_has_a_copy_that_keeps_up) {
  for (const member_id id : {m0, m1, m2}) all->answered(id, answer(id));
  all->gone(m3, true);
  const plan thin = published();
  EXPECT_TRUE(thin.exposed);
  const plan aim = aim_of(thin, settings);
  collection later(thin);
  for (const member_id id : {m0, m1, m2}) {
    promise p;
    p.next = generation(5);
    p.of_plan = true;
    p.seen = base + 5;
    p.records = {notice_of(base + 5)};
    for (const block_id b : blocks()) {
      if (holds(aim, id, b) || holds(thin, id, b)) p.blocks.push_back({b, base + 5, false, false});
    }
    later.answered(id, p);
  }
  const auto again = next_plan(later, thin, {}, settings);
  ASSERT_TRUE(std::holds_alternative<plan>(again));
  EXPECT_EQ(std::get<plan>(again).placement, aim.placement);
  EXPECT_FALSE(std::get<plan>(again).exposed);
}

TEST_F(collection_test, lets_a_leaver_go_when_the_others_have_all_blocks) {
  for (const member_id id : {m0, m1, m2, m3}) {
    promise p = answer(id);
    p.blocks.clear();  // copies included
    for (const block_id b : blocks()) p.blocks.push_back({b, base, false, false});
    all->answered(id, p);
  }
  settings.leaving = {m2};
  EXPECT_THAT(members_of(published()), ElementsAre(m0, m1, m3));
}

TEST_F(collection_test, keeps_a_leaver_while_some_block_would_have_too_few_holders_without_it) {
  for (const member_id id : {m0, m1, m2, m3}) all->answered(id, answer(id));
  settings.leaving = {m2};
  EXPECT_THAT(members_of(published()), ElementsAre(m0, m1, m2, m3));
}

// H-29.
TEST_F(collection_test, keeps_a_leaver_while_some_block_is_only_there) {
  const placed_blocks& part = present.holders_of({0, 0});
  const member_id leaver = part.primary;
  for (const member_id id : {m0, m1, m2, m3}) {
    if (id != part.backups.front()) all->answered(id, answer(id));
  }
  all->gone(part.backups.front(), true);
  settings.leaving = {leaver};
  EXPECT_THAT(members_of(published()), Contains(leaver));
}

TEST_F(collection_test, keeps_the_last_member_even_if_it_leaves) {
  planner_input in = equal_world(1, 8, 2, 8, 1);
  in.base = base;
  in.number = generation(3);
  present = make_plan(in);
  collection c(present);
  c.answered(m0, answer(m0));
  settings.leaving = {m0};
  EXPECT_TRUE(std::holds_alternative<plan>(next_plan(c, present, {}, settings)));
}

TEST_F(collection_test, aims_at_copies_for_those_who_stay) {
  settings.leaving = {m2};
  const plan aim = aim_of(present, settings);
  EXPECT_THAT(members_of(aim), ElementsAre(m0, m1, m3));
  for (const block_copy& c : copies_to(aim, present)) EXPECT_NE(c.to, m2);
  settings.leaving = {m0, m1, m2, m3};
  EXPECT_EQ(aim_of(present, settings), present);
}

// --- whatever happens ---

// Against the rules said plainly: only who answered is listed, only who has a block holds it, every
// block has a holder of the plan before, and what all holders of some block have seen is in it.
TEST_F(collection_test, random_promises_lead_to_plans_that_keep_the_rules) {
  std::size_t plans = 0, waits = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    random_world random(seed);
    collection c(present);
    std::map<member_id, promise> given;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const member_id id(i);
      if (random.chance(6)) {
        c.gone(id, random.chance(2));
        continue;
      }
      const std::uint64_t seen = base + random.below(2);
      promise p = answer(id, seen);
      for (held_fact& f : p.blocks) {
        // At the version seen, or still one behind with its gradient.
        f.version = seen - (seen > base && random.chance(2) ? 1 : 0);
        f.next_sum = f.version < seen || !random.chance(3);
        f.lost = random.chance(12);
      }
      given[id] = p;
      c.answered(id, p);
    }
    const auto one = next_plan(c, present, {}, settings);
    if (!std::holds_alternative<plan>(one)) {
      ++waits;
      EXPECT_EQ(std::get<std::vector<block_id>>(one), c.uncovered());
      continue;
    }
    ++plans;
    const plan& next = std::get<plan>(one);
    std::uint64_t highest = base;
    for (const auto& [id, p] : given) highest = std::max(highest, p.seen);
    EXPECT_EQ(next.base, highest);
    EXPECT_EQ(next.records.back().record.step, highest);
    for (const plan_member& m : next.members) EXPECT_TRUE(given.contains(m.id));
    for (const block_id b : blocks()) {
      for (const plan_member& m : next.members) {
        EXPECT_TRUE(!holds(next, m.id, b) || c.can_hold(m.id, b)) << seed;
      }
    }
  }
  EXPECT_GT(plans, 200u);
  EXPECT_GT(waits, 200u);
}

}  // namespace
}  // namespace troupe::actors::protocol
