#include "actors/optimizer_shard.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "actors/block_update.hpp"
#include "actors/exchange.hpp"
#include "actors/messages.hpp"
#include "actors/protocol/held_block.hpp"

namespace troupe::actors {
namespace {

using protocol::backup_block;
using protocol::primary_block;

// Every node of every source of a block, whoever completes it.
std::vector<node_key> inputs_of(const protocol::plan& plan, const world_shape& shape,
                                block_id block) {
  std::vector<node_key> inputs;
  const std::size_t sources = shape.layers.at(block.layer).at(block.block).sources.size();
  for (std::uint8_t source = 0; source < sources; ++source) {
    for (const protocol::plan_member& m : plan.members) {
      for (const tree_node& node : protocol::nodes_of(plan, m)) {
        inputs.push_back({block, source, node});
      }
    }
  }
  return inputs;
}

// Ranks that compute with the block's parameters and do not hold it in the plan.
std::vector<member_id> readers_of(const protocol::plan& plan, block_id block) {
  const protocol::placed_blocks& held = plan.holders_of(block);
  std::vector<member_id> readers;
  for (const protocol::plan_member& m : plan.members) {
    const bool holds = m.id == held.primary || std::ranges::binary_search(held.backups, m.id);
    if (m.leaves > 0 && !holds) readers.push_back(m.id);
  }
  return readers;
}

// The update that a decision brings, told to the shard when it has ended.
void update(const caf::actor& self, const shared_context& around, block_id block,
            const protocol::decision_record& record) {
  update_block(around, block, record, [self, block, step = record.step] {
    caf::anon_send(self, block_updated{step, block});
  });
}

struct primary_state {
  static inline const char* name = "optimizer_shard (primary)";

  shared_context around;
  std::map<block_id, primary_block> blocks;
  // Ranks that hold the layer and hold none of its block: they need the parameters.
  std::map<block_id, std::vector<member_id>> readers;
  std::map<block_id, std::vector<member_id>> wishes;  // for copies, that wait for their moment
  protocol::record_notice decided;
  caf::actor self;

  primary_block& at(block_id block) { return blocks.at(block); }

  void carry_out(primary_block& block, result<primary_block::order> ordered) {
    if (!ordered) return around->fail(ordered.failure());
    const std::uint64_t step = block.version() + 1;
    switch (*ordered) {
      case primary_block::order::none:
        return;
      case primary_block::order::reduce:
        return around->work.reduce(
            block.block(), step,
            [me = self, ctx = around, step, id = block.block()](computation::trouble trouble,
                                                                const sum_facts& facts) {
              if (ctx->over) return;
              if (trouble) return ctx->fail(error_of(trouble));
              ctx->lasting.held.sum_held(id, step);
              caf::anon_send(me, sum_reduced{step, {id, facts.hash, facts.squares}});
            });
      case primary_block::order::forward:
        for (const member_id backup : block.backups()) {
          around->bulk.send_sum(backup, {step, block.block(), block.sum().hash});
        }
        return around->reached(protocol_point::grad_forwarded, step);
      case primary_block::order::vote:
        caf::anon_send(around->mail.rank, block_ready{step, block.sum()});
        return;
      case primary_block::order::apply:
        return update(self, around, block.block(), decided.record);
      case primary_block::order::publish:
        for (const member_id reader : readers.at(block.block())) {
          around->bulk.send_parameters(reader, {block.block(), decided});
          around->reached(protocol_point::params_sent, decided.record.step, reader);
        }
        begin_copies(block);
        return carry_out(block, block.published());
    }
  }

  // Who gets a copy keeps up from there on as a backup does, and needs no parameters any more.
  void begin_copies(primary_block& block) {
    const auto waiting = wishes.find(block.block());
    if (waiting == wishes.end() || !block.may_take_backup()) return;
    for (const member_id to : waiting->second) {
      block.add_backup(to);
      std::erase(readers.at(block.block()), to);
      around->work.copy_state(
          block.block(),
          [me = self, ctx = around, to, id = block.block(), version = block.version()](
              computation::trouble trouble, const computation::state_copy& copy) {
            if (trouble) return ctx->fail(error_of(trouble));
            caf::anon_send(me, state_copied{id, to, version, copy.hash, copy.bytes});
          });
      around->reached(protocol_point::copy_begin, block.version() + 1, to);
    }
    wishes.erase(waiting);
  }
};

caf::behavior primary_shard(caf::stateful_actor<primary_state>* self, shared_context around,
                            std::uint32_t layer) {
  guard(self, around);
  primary_state& state = self->state;
  state.around = around;
  state.self = caf::actor_cast<caf::actor>(self);
  for (const block_id block : protocol::blocks_primary(around->plan, around->self)) {
    if (block.layer != layer) continue;
    const protocol::placed_blocks& held = around->plan.holders_of(block);
    state.blocks.emplace(
        block, primary_block(block, around->plan.base,
                             inputs_of(around->plan, around->work.shape(), block), held.backups));
    state.readers[block] = readers_of(around->plan, block);
  }
  const auto node = [self](std::uint64_t step, const node_key& key) {
    primary_state& s = self->state;
    s.around->points.node_taken(s.around->self, step, key);
    const auto it = s.blocks.find(key.block);
    if (it == s.blocks.end()) {
      return s.around->fail({exit_code::defect, "a gradient node came for a block held elsewhere"});
    }
    s.carry_out(it->second, it->second.node_arrived(step, key));
  };
  return {
      while_current<local_node>(around, [node](const local_node& m) { node(m.step, m.key); }),
      while_current<node_arrived>(
          around, [node](const node_arrived& m) { node(m.header.step, m.header.key); }),
      while_current<sum_reduced>(around,
                                 [self](const sum_reduced& m) {
                                   primary_block& block = self->state.at(m.sum.block);
                                   self->state.around->reached(protocol_point::reduced, m.step);
                                   self->state.carry_out(block, block.reduced(m.step, m.sum));
                                 }),
      while_current<incoming>(around,
                              [self](const incoming& m) {
                                primary_state& s = self->state;
                                if (const auto* wish = std::get_if<protocol::copy_wish>(&m.what)) {
                                  const auto it = s.blocks.find(wish->block);
                                  if (it == s.blocks.end()) return;
                                  s.wishes[wish->block].push_back(m.from);
                                  return s.begin_copies(it->second);
                                }
                                const auto& held = std::get<protocol::sum_held>(m.what);
                                const auto it = s.blocks.find(held.block);
                                if (it == s.blocks.end()) return;
                                s.carry_out(it->second,
                                            it->second.held(m.from, held.step, held.hash));
                              }),
      while_current<state_copied>(around,
                                  [self](const state_copied& m) {
                                    const generation_context& in = *self->state.around;
                                    in.bulk.send_state(m.to, {m.block, m.version, m.hash}, m.bytes);
                                    in.reached(protocol_point::copy_half, m.version + 1, m.to);
                                  }),
      while_current<give_parameters>(
          around,
          [self](const give_parameters& m) {
            // Also to one whose copy has begun meanwhile: its step needs the base's parameters.
            for (const auto& [id, block] : self->state.blocks) {
              for (const member_id reader : readers_of(self->state.around->plan, id)) {
                if (!std::ranges::binary_search(m.to, reader)) continue;
                const generation_context& in = *self->state.around;
                in.bulk.send_parameters(reader, {id, m.base});
                in.reached(protocol_point::params_sent, m.base.record.step, reader);
              }
            }
          }),
      while_current<step_decided>(around,
                                  [self](const step_decided& m) {
                                    self->state.decided = m.notice;
                                    for (auto& [id, block] : self->state.blocks) {
                                      self->state.carry_out(block,
                                                            block.decided(m.notice.record.step));
                                    }
                                  }),
      while_current<block_updated>(
          around,
          [self](const block_updated& m) {
            primary_state& s = self->state;
            s.around->reached(protocol_point::applied, m.step);
            primary_block& block = s.at(m.block);
            result<primary_block::order> ordered = block.applied(m.step);
            caf::anon_send(s.around->mail.rank, block_applied{m.block, m.step, true});
            s.carry_out(block, std::move(ordered));
          }),
  };
}

struct backup_state {
  static inline const char* name = "optimizer_shard (backup)";

  shared_context around;
  std::map<block_id, backup_block> blocks;
  std::map<block_id, member_id> primaries;
  std::set<block_id> copies;          // of them, those that the plan does not list here
  std::vector<block_id> to_ask_for;   // the next one last
  std::optional<block_id> asked_for;  // on its way
  caf::actor self;

  // One after another: a copy holds up the step of its block's primary for as long as it takes.
  void ask_for_next() {
    if (to_ask_for.empty()) {
      asked_for.reset();
      caf::anon_send(around->mail.rank, copies_taken{});
      return;
    }
    const block_id block = to_ask_for.back();
    to_ask_for.pop_back();
    asked_for = block;
    around->work.make_room(block);
    around->bulk.expect_copy(block);
    blocks.emplace(block, backup_block(block));
    copies.insert(block);
    primaries[block] = around->plan.holders_of(block).primary;
    around->mail.send(primaries[block], protocol::copy_wish{block});
    around->reached(protocol_point::copy_begin, around->lasting.seen + 1, primaries[block]);
  }

  backup_block* find(block_id block) {
    const auto it = blocks.find(block);
    if (it != blocks.end()) return &it->second;
    around->fail({exit_code::defect, "a gradient sum came for a block that is not backed up here"});
    return nullptr;
  }

  void carry_out(backup_block& block, std::uint64_t step, result<backup_block::order> ordered,
                 const protocol::decision_record* record = nullptr) {
    if (!ordered) return around->fail(ordered.failure());
    switch (*ordered) {
      case backup_block::order::none:
        return;
      case backup_block::order::verify:
        return around->work.hash_sum(block.block(), step,
                                     [me = self, ctx = around, step, id = block.block()](
                                         computation::trouble trouble, const hash128& hash) {
                                       if (trouble) return ctx->fail(error_of(trouble));
                                       caf::anon_send(me, sum_hashed{step, id, hash});
                                     });
      case backup_block::order::acknowledge:
        around->points.sum_held_by_backup(around->self, block.version() + 1, block.block(),
                                          block.held_hash());
        around->reached(protocol_point::grad_held, block.version() + 1);
        return around->mail.send(
            primaries.at(block.block()),
            protocol::sum_held{block.version() + 1, block.block(), block.held_hash()},
            sent_mark{protocol_point::acked, block.version() + 1});
      case backup_block::order::apply:
        return update(self, around, block.block(), *record);
    }
  }
};

caf::behavior backup_shard(caf::stateful_actor<backup_state>* self, shared_context around,
                           std::uint32_t layer) {
  guard(self, around);
  backup_state& state = self->state;
  state.around = around;
  state.self = caf::actor_cast<caf::actor>(self);
  for (const block_id block : protocol::blocks_backed_up(around->plan, around->self)) {
    if (block.layer != layer) continue;
    state.blocks.emplace(block, backup_block(block, around->plan.base));
    state.primaries[block] = around->plan.holders_of(block).primary;
  }
  return {
      while_current<sum_arrived>(around,
                                 [self](const sum_arrived& m) {
                                   if (backup_block* block = self->state.find(m.header.block)) {
                                     self->state.carry_out(
                                         *block, m.header.step,
                                         block->sum_arrived(m.header.step, m.header.hash));
                                   }
                                 }),
      while_current<sum_hashed>(around,
                                [self](const sum_hashed& m) {
                                  backup_state& s = self->state;
                                  backup_block* block = s.find(m.block);
                                  if (block == nullptr) return;
                                  result<backup_block::order> ordered =
                                      block->verified(m.step, m.hash);
                                  if (ordered && block->here())
                                    s.around->lasting.held.sum_held(m.block, m.step);
                                  s.carry_out(*block, m.step, std::move(ordered));
                                }),
      while_current<step_decided>(
          around,
          [self](const step_decided& m) {
            const std::uint64_t step = m.notice.record.step;
            for (auto& [id, block] : self->state.blocks) {
              // A copy starts from a version whose record may be seen here later.
              if (self->state.copies.contains(id) && (!block.here() || block.version() >= step)) {
                continue;
              }
              self->state.carry_out(block, step, block.decided(step), &m.notice.record);
            }
          }),
      while_current<block_updated>(around,
                                   [self](const block_updated& m) {
                                     backup_state& s = self->state;
                                     backup_block* block = s.find(m.block);
                                     if (block == nullptr) return;
                                     s.around->reached(protocol_point::applied, m.step);
                                     result<backup_block::order> ordered = block->applied(m.step);
                                     caf::anon_send(s.around->mail.rank,
                                                    block_applied{m.block, m.step,
                                                                  !s.copies.contains(m.block)});
                                     s.carry_out(*block, m.step, std::move(ordered));
                                   }),
      while_current<take_copies>(around,
                                 [self](const take_copies& m) {
                                   backup_state& s = self->state;
                                   s.to_ask_for = {m.blocks.rbegin(), m.blocks.rend()};
                                   s.ask_for_next();
                                 }),
      while_current<state_arrived>(
          around,
          [self](const state_arrived& m) {
            backup_state& s = self->state;
            s.around->reached(protocol_point::copy_half, m.header.version + 1);
            s.around->work.take_state(
                m.header.block, m.bytes, m.header.hash,
                [me = s.self, ctx = s.around, header = m.header](computation::trouble trouble) {
                  if (trouble) return ctx->fail(error_of(trouble));
                  caf::anon_send(me, state_taken{header.block, header.version});
                });
          }),
      while_current<state_taken>(around,
                                 [self](const state_taken& m) {
                                   backup_state& s = self->state;
                                   backup_block* block = s.find(m.block);
                                   if (block == nullptr) return;
                                   const backup_block::order next = block->copied(m.version);
                                   s.around->lasting.held.have(m.block, m.version);
                                   if (next == backup_block::order::acknowledge) {
                                     s.around->lasting.held.sum_held(m.block, m.version + 1);
                                   }
                                   s.around->points.copy_verified(s.around->self, m.block,
                                                                  m.version);
                                   s.around->reached(protocol_point::copy_verified, m.version + 1);
                                   s.carry_out(*block, m.version + 1, next);
                                   s.ask_for_next();
                                 }),
  };
}

}  // namespace

caf::actor spawn_optimizer_shard(caf::event_based_actor* parent, shared_context around,
                                 shard_role role, std::uint32_t layer) {
  return role == shard_role::primary
             ? parent->spawn<caf::linked>(primary_shard, std::move(around), layer)
             : parent->spawn<caf::linked>(backup_shard, std::move(around), layer);
}

}  // namespace troupe::actors
