#include "actors/protocol/held_block.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <random>

namespace troupe::actors::protocol {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using give = primary_block::order;
using keep = backup_block::order;
using state = primary_block::state;

constexpr block_id block{3, 1};
constexpr hash128 right{1, 2}, wrong{3, 4};
constexpr member_id first_backup{5}, second_backup{7};

node_key node(std::uint32_t leaf, std::uint8_t source = 0) { return {block, source, {leaf, 1}}; }
block_sum sum() { return {block, right, 2.0}; }

template <class T>
std::string refusal(const result<T>& r) {
  if (r) return "it was taken";
  EXPECT_EQ(r.failure().code, exit_code::defect);
  return r.failure().message;
}

primary_block new_primary(const std::vector<member_id>& backups = {first_backup, second_backup}) {
  return {block, 4, {node(0), node(1), node(0, 1)}, backups};
}

// Brings a new primary as far as `to` in step 5.
primary_block primary_at(state to) {
  primary_block p = new_primary();
  if (to == state::collecting) return p;
  for (const node_key& key : {node(0), node(1), node(0, 1)}) EXPECT_TRUE(p.node_arrived(5, key));
  if (to == state::reducing) return p;
  EXPECT_EQ(*p.reduced(5, sum()), give::forward);
  if (to == state::forwarding) return p;
  for (const member_id backup : {first_backup, second_backup})
    EXPECT_TRUE(p.held(backup, 5, right));
  if (to == state::ready) return p;
  EXPECT_EQ(*p.decided(5), give::apply);
  return p;
}

TEST(primary_block, goes_from_one_version_to_the_next_by_nodes_sum_copies_and_record) {
  primary_block p = new_primary();
  EXPECT_EQ(p.now(), state::collecting);
  EXPECT_EQ(*p.node_arrived(5, node(1)), give::none);
  EXPECT_EQ(*p.node_arrived(5, node(0, 1)), give::none);
  EXPECT_EQ(*p.node_arrived(5, node(0)), give::reduce);
  EXPECT_EQ(*p.reduced(5, sum()), give::forward);
  EXPECT_EQ(p.sum(), sum());
  EXPECT_EQ(*p.held(second_backup, 5, right), give::none);
  EXPECT_EQ(*p.held(first_backup, 5, right), give::vote);
  EXPECT_EQ(*p.decided(5), give::apply);
  EXPECT_EQ(p.version(), 4u);
  EXPECT_EQ(*p.applied(5), give::publish);
  EXPECT_EQ(p.published(), give::none);
  EXPECT_EQ(p.version(), 5u);
  EXPECT_EQ(p.now(), state::collecting);
  EXPECT_EQ(*p.node_arrived(6, node(0)), give::none);
}

TEST(primary_block, without_backups_votes_as_soon_as_its_sum_is_there) {
  primary_block p(block, 0, {node(0)}, {});
  EXPECT_EQ(*p.node_arrived(1, node(0)), give::reduce);
  EXPECT_EQ(*p.reduced(1, sum()), give::vote);
}

TEST(primary_block, takes_every_event_in_its_own_state_only) {
  for (const state at :
       {state::collecting, state::reducing, state::forwarding, state::ready, state::applying}) {
    SCOPED_TRACE(static_cast<int>(at));
    EXPECT_EQ(static_cast<bool>(primary_at(at).node_arrived(5, node(0))), at == state::collecting);
    EXPECT_EQ(static_cast<bool>(primary_at(at).reduced(5, sum())), at == state::reducing);
    EXPECT_EQ(static_cast<bool>(primary_at(at).held(first_backup, 5, right)),
              at == state::forwarding);
    EXPECT_EQ(static_cast<bool>(primary_at(at).decided(5)), at == state::ready);
    EXPECT_EQ(static_cast<bool>(primary_at(at).applied(5)), at == state::applying);
    EXPECT_EQ(static_cast<bool>(primary_at(at).node_arrived(6, node(0))),
              at == state::ready || at == state::applying);
  }
}

TEST(primary_block, refuses_every_event_of_another_step) {
  for (const std::uint64_t step : {0u, 4u, 6u, 7u}) {
    SCOPED_TRACE(step);
    EXPECT_FALSE(primary_at(state::collecting).node_arrived(step, node(0)));
    EXPECT_FALSE(primary_at(state::reducing).reduced(step, sum()));
    EXPECT_FALSE(primary_at(state::forwarding).held(first_backup, step, right));
    EXPECT_FALSE(primary_at(state::ready).decided(step));
    EXPECT_FALSE(primary_at(state::applying).applied(step));
  }
  EXPECT_FALSE(primary_at(state::applying).node_arrived(7, node(0)));
}

TEST(primary_block, names_a_node_that_came_twice_or_is_none_of_its_inputs) {
  primary_block p = new_primary();
  ASSERT_TRUE(p.node_arrived(5, node(0)));
  EXPECT_THAT(refusal(p.node_arrived(5, node(0))),
              AllOf(HasSubstr("block 1 of layer 3 at version 4, step 5"), HasSubstr("node 0+1"),
                    HasSubstr("came twice")));
  EXPECT_FALSE(p.node_arrived(5, node(2)));
  EXPECT_FALSE(p.node_arrived(5, node(1, 1)));
  EXPECT_FALSE(p.node_arrived(5, {{3, 0}, 0, {1, 1}}));
  // A refused node leaves everything as it was.
  EXPECT_EQ(*p.node_arrived(5, node(1)), give::none);
  EXPECT_EQ(*p.node_arrived(5, node(0, 1)), give::reduce);
}

TEST(primary_block, names_a_backup_that_acknowledges_twice_or_is_a_stranger) {
  primary_block p = primary_at(state::forwarding);
  ASSERT_TRUE(p.held(first_backup, 5, right));
  EXPECT_THAT(refusal(p.held(first_backup, 5, right)), HasSubstr("member 5 acknowledged twice"));
  EXPECT_THAT(refusal(p.held(member_id(6), 5, right)), HasSubstr("member 6"));
  EXPECT_EQ(*p.held(second_backup, 5, right), give::vote);
}

TEST(primary_block, does_not_vote_for_a_sum_whose_copy_has_another_hash) {
  EXPECT_THAT(refusal(primary_at(state::forwarding).held(second_backup, 5, wrong)),
              AllOf(HasSubstr("member 7"), HasSubstr(right.hex()), HasSubstr(wrong.hex()),
                    HasSubstr("bits were changed")));
}

TEST(primary_block, counts_nodes_of_members_that_saw_the_record_earlier) {
  primary_block p = primary_at(state::ready);
  EXPECT_EQ(*p.node_arrived(6, node(0)), give::none);
  EXPECT_THAT(refusal(p.node_arrived(6, node(0))), HasSubstr("came twice"));
  ASSERT_TRUE(p.decided(5));
  EXPECT_EQ(*p.node_arrived(6, node(1)), give::none);
  EXPECT_EQ(*p.applied(5), give::publish);
  EXPECT_EQ(*p.node_arrived(6, node(0, 1)), give::reduce);
}

TEST(primary_block, adds_up_at_once_when_all_nodes_of_the_next_step_were_early) {
  primary_block p = primary_at(state::applying);
  for (const node_key& key : {node(0), node(1), node(0, 1)}) {
    EXPECT_EQ(*p.node_arrived(6, key), give::none);
  }
  EXPECT_EQ(*p.applied(5), give::publish);
  EXPECT_EQ(p.published(), give::reduce);
  EXPECT_EQ(p.published(), give::none) << "once";
  EXPECT_EQ(*p.reduced(6, sum()), give::forward);
}

// H-21: a copy is of one version, and whoever gets it holds every sum from there on.
TEST(primary_block, takes_one_more_backup_only_while_no_sum_is_on_its_way) {
  constexpr member_id copied{9};
  for (const state at :
       {state::collecting, state::reducing, state::forwarding, state::ready, state::applying}) {
    SCOPED_TRACE(static_cast<int>(at));
    primary_block p = primary_at(at);
    const bool may = at == state::collecting || at == state::reducing;
    EXPECT_EQ(p.may_take_backup(), may);
    if (!may) {
      EXPECT_DEATH(p.add_backup(copied), "at the wrong moment");
    }
  }
  primary_block p = primary_at(state::reducing);
  p.add_backup(copied);
  EXPECT_EQ(p.backups(), (std::vector<member_id>{first_backup, second_backup, copied}));
  EXPECT_EQ(*p.reduced(5, sum()), give::forward);
  ASSERT_TRUE(p.held(first_backup, 5, right));
  EXPECT_EQ(*p.held(second_backup, 5, right), give::none) << "the copy has to hold it too";
  EXPECT_EQ(*p.held(copied, 5, right), give::vote);
  EXPECT_FALSE(p.may_take_backup());
  ASSERT_TRUE(p.decided(5));
  ASSERT_TRUE(p.applied(5));
  EXPECT_TRUE(p.may_take_backup()) << "the next moment";
  EXPECT_DEATH(p.add_backup(copied), "twice");
}

TEST(primary_block, that_was_alone_forwards_once_it_has_a_backup) {
  primary_block p(block, 0, {node(0)}, {});
  EXPECT_EQ(*p.node_arrived(1, node(0)), give::reduce);
  p.add_backup(first_backup);
  EXPECT_EQ(*p.reduced(1, sum()), give::forward);
  EXPECT_EQ(*p.held(first_backup, 1, right), give::vote);
}

TEST(primary_block, needs_inputs_each_once) {
  EXPECT_DEATH(primary_block(block, 0, {}, {}), "each once");
  EXPECT_DEATH(primary_block(block, 0, {node(0), node(0)}, {}), "each once");
}

// Brings a new backup at version 4 to where the sum of step 5 is held.
backup_block holding() {
  backup_block b(block, 4);
  EXPECT_EQ(*b.sum_arrived(5, right), keep::verify);
  EXPECT_EQ(*b.verified(5, right), keep::acknowledge);
  return b;
}

TEST(backup_block, verifies_acknowledges_and_applies) {
  backup_block b = holding();
  EXPECT_EQ(b.held_hash(), right);
  EXPECT_EQ(*b.decided(5), keep::apply);
  EXPECT_EQ(b.version(), 4u);
  EXPECT_EQ(*b.applied(5), keep::none);
  EXPECT_EQ(b.version(), 5u);
  EXPECT_EQ(*b.sum_arrived(6, wrong), keep::verify);
}

TEST(backup_block, refuses_a_sum_twice_or_of_a_step_it_cannot_be_at) {
  backup_block b(block, 4);
  for (const std::uint64_t step : {0u, 4u, 6u, 7u}) EXPECT_FALSE(b.sum_arrived(step, right));
  ASSERT_TRUE(b.sum_arrived(5, right));
  EXPECT_THAT(refusal(b.sum_arrived(5, right)),
              AllOf(HasSubstr("block 1 of layer 3 at version 4, step 5"), HasSubstr("came twice")));
  EXPECT_FALSE(b.sum_arrived(6, right)) << "nobody can be a step further while this one is unheld";
  ASSERT_TRUE(b.verified(5, right));
  EXPECT_FALSE(b.sum_arrived(5, right));
  EXPECT_FALSE(b.sum_arrived(7, right));
}

TEST(backup_block, refuses_hashes_of_nothing_and_changed_bits) {
  backup_block b(block, 4);
  EXPECT_FALSE(b.verified(5, right));
  ASSERT_TRUE(b.sum_arrived(5, right));
  EXPECT_THAT(refusal(b.verified(5, wrong)), AllOf(HasSubstr(right.hex()), HasSubstr(wrong.hex())));
  EXPECT_FALSE(b.decided(5)) << "a sum that is not held cannot be decided";
  ASSERT_TRUE(b.verified(5, right));
  EXPECT_FALSE(b.verified(5, right)) << "twice";
}

TEST(backup_block, refuses_a_decision_or_an_end_of_an_update_out_of_turn) {
  backup_block empty(block, 4);
  EXPECT_FALSE(empty.decided(5));
  EXPECT_FALSE(empty.applied(5));
  backup_block b = holding();
  EXPECT_FALSE(b.applied(5));
  EXPECT_FALSE(b.decided(4));
  EXPECT_FALSE(b.decided(6));
  ASSERT_TRUE(b.decided(5));
  EXPECT_FALSE(b.decided(5)) << "twice";
  EXPECT_FALSE(b.applied(6));
  ASSERT_TRUE(b.applied(5));
  EXPECT_FALSE(b.applied(5));
}

TEST(backup_block, takes_the_next_sum_before_its_record_but_acknowledges_it_after_its_update) {
  backup_block b = holding();
  EXPECT_EQ(*b.sum_arrived(6, wrong), keep::verify);
  EXPECT_EQ(*b.verified(6, wrong), keep::none);
  EXPECT_EQ(b.held_hash(), right);
  EXPECT_FALSE(b.decided(6)) << "one version after the other";
  EXPECT_EQ(*b.decided(5), keep::apply);
  EXPECT_EQ(*b.applied(5), keep::acknowledge);
  EXPECT_EQ(b.held_hash(), wrong);
  EXPECT_EQ(*b.decided(6), keep::apply);
}

TEST(backup_block, acknowledges_an_early_sum_when_it_is_verified_after_the_update) {
  backup_block b = holding();
  ASSERT_TRUE(b.decided(5));
  EXPECT_EQ(*b.sum_arrived(6, wrong), keep::verify);
  EXPECT_EQ(*b.applied(5), keep::none);
  EXPECT_EQ(*b.verified(6, wrong), keep::acknowledge);
}

// H-21. The state and the next sum come by ways of their own, so either may be first.
TEST(backup_block, of_a_copy_acknowledges_once_both_the_copy_and_the_sum_are_here) {
  backup_block sum_last(block);
  EXPECT_FALSE(sum_last.here());
  EXPECT_EQ(sum_last.copied(4), keep::none);
  EXPECT_TRUE(sum_last.here());
  EXPECT_EQ(sum_last.version(), 4u);
  EXPECT_EQ(*sum_last.sum_arrived(5, right), keep::verify);
  EXPECT_EQ(*sum_last.verified(5, right), keep::acknowledge);

  backup_block sum_first(block);
  EXPECT_EQ(*sum_first.sum_arrived(5, right), keep::verify);
  EXPECT_EQ(*sum_first.verified(5, right), keep::none) << "there is nothing that it belongs to";
  EXPECT_EQ(sum_first.copied(4), keep::acknowledge);
  EXPECT_EQ(sum_first.held_hash(), right);
  EXPECT_EQ(*sum_first.decided(5), keep::apply);
  EXPECT_EQ(*sum_first.applied(5), keep::none);
  EXPECT_EQ(sum_first.version(), 5u);

  backup_block between(block);
  EXPECT_EQ(*between.sum_arrived(5, right), keep::verify);
  EXPECT_EQ(between.copied(4), keep::none) << "not verified yet";
  EXPECT_EQ(*between.verified(5, right), keep::acknowledge);
}

TEST(backup_block, of_a_copy_neither_applies_nor_takes_changed_bits_before_it_is_here) {
  backup_block b(block);
  EXPECT_FALSE(b.decided(1));
  EXPECT_FALSE(b.applied(1));
  ASSERT_TRUE(b.sum_arrived(5, right));
  EXPECT_FALSE(b.sum_arrived(5, right)) << "twice";
  EXPECT_FALSE(b.verified(5, wrong));
  EXPECT_FALSE(b.decided(5)) << "the copy is still missing";
  ASSERT_TRUE(b.verified(5, right));
  EXPECT_FALSE(b.decided(5)) << "the copy is still missing";
  EXPECT_EQ(b.copied(4), keep::acknowledge);
  EXPECT_TRUE(b.decided(5));
}

// H-23: the sum that came before a copy of a later version means nothing.
TEST(backup_block, of_a_copy_acknowledges_no_sum_of_another_step_than_its_next) {
  backup_block b(block);
  ASSERT_TRUE(b.sum_arrived(4, wrong));
  ASSERT_TRUE(b.verified(4, wrong));
  EXPECT_EQ(b.copied(4), keep::none);
  EXPECT_FALSE(b.decided(4));
  EXPECT_EQ(*b.sum_arrived(5, right), keep::verify);
  EXPECT_EQ(*b.verified(5, right), keep::acknowledge);
}

TEST(backup_block, takes_a_copy_once_and_none_where_the_block_is_here) {
  backup_block b(block);
  EXPECT_EQ(b.copied(4), keep::none);
  EXPECT_DEATH(b.copied(4), "that is here");
  backup_block held(block, 4);
  EXPECT_TRUE(held.here());
  EXPECT_DEATH(held.copied(4), "that is here");
}

// A primary and a backup over ways that deliver in any order, against what must hold at any time:
// holders are at most one version apart, no version without the sum of its step in both memories,
// and every step that began ends.
TEST(held_block, holders_stay_together_whatever_the_order_of_events) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const std::vector<node_key> inputs{node(0), node(1)};
    primary_block primary(block, 0, inputs, {first_backup});
    backup_block backup(block, 0);
    std::vector<std::function<void()>> under_way;
    std::uint64_t decided = 0;
    const auto hash = [](std::uint64_t step) { return hash128{step, ~step}; };
    std::function<void(result<give>, std::uint64_t)> order;
    std::function<void(result<keep>, std::uint64_t)> backup_order;
    const auto nodes_of = [&](std::uint64_t step) {
      for (const node_key& key : inputs) {
        under_way.push_back([&, step, key] {
          const std::uint64_t at = primary.version() + 1;
          order(primary.node_arrived(step, key), at);
        });
      }
    };
    backup_order = [&](result<keep> r, std::uint64_t step) {
      ASSERT_TRUE(r) << refusal(r);
      if (*r == keep::verify) {
        under_way.push_back([&, step] { backup_order(backup.verified(step, hash(step)), step); });
      } else if (*r == keep::acknowledge) {
        under_way.push_back([&, at = backup.version() + 1, held = backup.held_hash()] {
          order(primary.held(first_backup, at, held), at);
        });
      } else if (*r == keep::apply) {
        under_way.push_back([&, step] { backup_order(backup.applied(step), step); });
      }
    };
    order = [&](result<give> r, std::uint64_t step) {
      ASSERT_TRUE(r) << refusal(r);
      switch (*r) {
        case give::none:
          return;
        case give::reduce:
          return under_way.push_back([&, step] {
            order(primary.reduced(step, {block, hash(step), 1}), step);
          });
        case give::forward:
          return under_way.push_back(
              [&, step] { backup_order(backup.sum_arrived(step, hash(step)), step); });
        case give::vote:
          decided = step;
          // Somebody who saw the record first is a step further already.
          if (decided < 6) nodes_of(step + 1);
          under_way.push_back([&, step] { order(primary.decided(step), step); });
          under_way.push_back([&, step] { backup_order(backup.decided(step), step); });
          return;
        case give::apply:
          return under_way.push_back([&, step] { order(primary.applied(step), step); });
        case give::publish:
          return order(primary.published(), step + 1);
      }
    };
    nodes_of(1);
    while (!under_way.empty()) {
      const std::size_t i = random() % under_way.size();
      const std::function<void()> event = std::move(under_way[i]);
      under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(i));
      event();
      ASSERT_LE(std::max(primary.version(), backup.version()),
                std::min(primary.version(), backup.version()) + 1);
      ASSERT_LE(std::max(primary.version(), backup.version()), decided);
    }
    EXPECT_EQ(primary.version(), 6u);
    EXPECT_EQ(backup.version(), 6u);
  }
}

}  // namespace
}  // namespace troupe::actors::protocol
