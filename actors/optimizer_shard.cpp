#include "actors/optimizer_shard.hpp"

#include <map>
#include <set>

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

// A completion that becomes a message to the actor itself; trouble ends the member's part.
template <class Message>
computation::completion tell(const caf::actor& self, const shared_context& around, Message what) {
  return [self, around, what](computation::trouble trouble) {
    if (trouble) return around->fail(error_of(trouble));
    caf::anon_send(self, what);
  };
}

struct primary_state {
  shared_context around;
  std::map<block_id, primary_block> blocks;
  // Ranks that hold the layer and hold none of its block: they need the parameters.
  std::map<block_id, std::vector<member_id>> readers;
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
        return reduce(block);
      case primary_block::order::forward:
        for (const member_id backup : block.backups()) {
          around->bulk.send_sum(backup, {step, block.block(), block.sum().hash});
        }
        return;
      case primary_block::order::vote:
        caf::anon_send(around->mail.rank, block_ready{step, block.sum()});
        return;
      case primary_block::order::apply:
        return around->work.apply(block.block(), decided.record,
                                  tell(self, around, block_updated{step, block.block()}));
      case primary_block::order::publish:
        return publish(block);
      case primary_block::order::publish_and_reduce:
        publish(block);
        return reduce(block);
    }
  }

  void reduce(const primary_block& block) {
    const std::uint64_t step = block.version() + 1;
    around->work.reduce(block.block(), step,
                        [me = self, ctx = around, step, id = block.block()](
                            computation::trouble trouble, const sum_facts& facts) {
                          if (trouble) return ctx->fail(error_of(trouble));
                          caf::anon_send(me, sum_reduced{step, {id, facts.hash, facts.squares}});
                        });
  }
  void publish(const primary_block& block) {
    for (const member_id reader : readers.at(block.block())) {
      around->bulk.send_parameters(reader, {block.block(), decided});
    }
  }
};

caf::behavior primary_shard(caf::stateful_actor<primary_state>* self, shared_context around,
                            std::uint32_t layer) {
  primary_state& state = self->state;
  state.around = around;
  state.self = caf::actor_cast<caf::actor>(self);
  for (const block_id block : protocol::blocks_primary(around->plan, around->self)) {
    if (block.layer != layer) continue;
    const protocol::placed_blocks& held = around->plan.holders_of(block);
    state.blocks.emplace(
        block, primary_block(block, around->plan.base,
                             inputs_of(around->plan, around->work.shape(), block), held.backups));
    std::vector<member_id>& readers = state.readers[block];
    for (const protocol::plan_member& m : around->plan.members) {
      const bool holds = m.id == held.primary || std::ranges::binary_search(held.backups, m.id);
      if (m.leaves > 0 && !holds) readers.push_back(m.id);
    }
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
      [node](const local_node& m) { node(m.step, m.key); },
      [node](const node_arrived& m) { node(m.header.step, m.header.key); },
      [self](const sum_reduced& m) {
        primary_block& block = self->state.at(m.sum.block);
        self->state.carry_out(block, block.reduced(m.step, m.sum));
      },
      [self](const incoming& m) {
        const auto& held = std::get<protocol::sum_held>(m.what);
        const auto it = self->state.blocks.find(held.block);
        if (it == self->state.blocks.end()) return;
        self->state.carry_out(it->second, it->second.held(m.from, held.step, held.hash));
      },
      [self](const step_decided& m) {
        self->state.decided = m.notice;
        for (auto& [id, block] : self->state.blocks) {
          self->state.carry_out(block, block.decided(m.notice.record.step));
        }
      },
      [self](const block_updated& m) {
        primary_state& s = self->state;
        primary_block& block = s.at(m.block);
        result<primary_block::order> ordered = block.applied(m.step);
        s.around->points.block_applied(s.around->self, m.block, m.step);
        caf::anon_send(s.around->mail.rank, block_applied{m.block, m.step});
        s.carry_out(block, std::move(ordered));
      },
  };
}

struct backup_state {
  shared_context around;
  std::map<block_id, backup_block> blocks;
  std::map<block_id, member_id> primaries;
  caf::actor self;

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
        return around->mail.send(
            primaries.at(block.block()),
            protocol::sum_held{block.version() + 1, block.block(), block.held_hash()});
      case backup_block::order::apply:
        return around->work.apply(block.block(), *record,
                                  tell(self, around, block_updated{step, block.block()}));
    }
  }
};

caf::behavior backup_shard(caf::stateful_actor<backup_state>* self, shared_context around,
                           std::uint32_t layer) {
  backup_state& state = self->state;
  state.around = around;
  state.self = caf::actor_cast<caf::actor>(self);
  for (const block_id block : protocol::blocks_backed_up(around->plan, around->self)) {
    if (block.layer != layer) continue;
    state.blocks.emplace(block, backup_block(block, around->plan.base));
    state.primaries[block] = around->plan.holders_of(block).primary;
  }
  return {
      [self](const sum_arrived& m) {
        if (backup_block* block = self->state.find(m.header.block)) {
          self->state.carry_out(*block, m.header.step,
                                block->sum_arrived(m.header.step, m.header.hash));
        }
      },
      [self](const sum_hashed& m) {
        if (backup_block* block = self->state.find(m.block)) {
          self->state.carry_out(*block, m.step, block->verified(m.step, m.hash));
        }
      },
      [self](const step_decided& m) {
        for (auto& [id, block] : self->state.blocks) {
          self->state.carry_out(block, m.notice.record.step, block.decided(m.notice.record.step),
                                &m.notice.record);
        }
      },
      [self](const block_updated& m) {
        backup_state& s = self->state;
        backup_block* block = s.find(m.block);
        if (block == nullptr) return;
        result<backup_block::order> ordered = block->applied(m.step);
        s.around->points.block_applied(s.around->self, m.block, m.step);
        caf::anon_send(s.around->mail.rank, block_applied{m.block, m.step});
        s.carry_out(*block, m.step, std::move(ordered));
      },
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
