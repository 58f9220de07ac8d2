#include "actors/sim/invariants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace troupe::actors::sim {
namespace {

bool same_bits(const toy_block& a, const toy_block& b) {
  return std::memcmp(a.data(), b.data(), sizeof a) == 0;
}

bool same_bits(const toy_state& a, const toy_state& b) {
  return same_bits(a.parameters, b.parameters) && same_bits(a.first_moments, b.first_moments) &&
         same_bits(a.second_moments, b.second_moments);
}

}  // namespace

std::string violation::text() const {
  return fmt::format("{} violated at member {}, step {}, block {} of layer {}: {}", invariant,
                     who.value, step, block.block, block.layer, what);
}

invariants::invariants(const toy_shape& toy, std::uint64_t steps)
    : toy_(toy), reference_(toy, toy_reference_settings(), steps) {}

void invariants::report(const char* invariant, member_id who, std::uint64_t step, block_id block,
                        std::string what) {
  if (!first_) first_ = {invariant, who, step, block, std::move(what)};
}

invariants::placed* invariants::find(block_id block) {
  const auto it = blocks_.find(block);
  return it == blocks_.end() ? nullptr : &it->second;
}

void invariants::plan_adopted(member_id, const protocol::plan& plan) {
  if (plan_ == plan.number) return;
  plan_ = plan.number;
  blocks_.clear();
  std::size_t nodes = 0;
  for (const protocol::plan_member& m : plan.members) {
    nodes += protocol::nodes_of(plan, m).size();
    seen_[m.id] = plan.base;
  }
  const world_shape shape = shape_of(toy_);
  for (const protocol::placed_blocks& part : plan.placement) {
    for (std::uint32_t i = 0; i < part.blocks; ++i) {
      const block_id id{part.layer, part.first_block + i};
      placed& block = blocks_[id];
      block.primary = part.primary;
      block.versions[part.primary] = plan.base;
      for (const member_id backup : part.backups) block.versions[backup] = plan.base;
      block.inputs = nodes * shape.layers.at(id.layer).at(id.block).sources.size();
      block.voted = plan.base;
    }
  }
}

void invariants::node_taken(member_id who, std::uint64_t step, const node_key& key) {
  ++checks_;
  placed* block = find(key.block);
  if (block == nullptr) return;
  const std::string node =
      fmt::format("node {}+{} of source {}", key.node.first, key.node.leaves, key.source);
  if (step != block->voted + 1) {
    return report("S-11", who, step, key.block, node + " came to another step than is collected");
  }
  if (!block->taken.insert(key).second) {
    report("S-11", who, step, key.block, node + " was taken twice");
  }
}

void invariants::sum_held_by_backup(member_id who, std::uint64_t step, block_id id,
                                    const hash128&) {
  ++checks_;
  const placed* block = find(id);
  if (block == nullptr) return;
  const auto at = block->versions.find(who);
  if (at == block->versions.end() || at->second + 1 == step) return;
  report("S-9", who, step, id,
         fmt::format("a backup at version {} says that it holds this step's gradient", at->second));
}

void invariants::voted(member_id who, const protocol::vote& vote) {
  for (const protocol::block_sum& sum : vote.sums) {
    ++checks_;
    placed* block = find(sum.block);
    if (block == nullptr) continue;
    if (vote.step == block->voted && sum.hash != block->voted_hash) {
      report("S-2", who, vote.step, sum.block, "two gradients were voted for in one step");
    }
    if (block->taken.size() != block->inputs) {
      report(
          "S-11", who, vote.step, sum.block,
          fmt::format("a vote for a sum of {} nodes, of {}", block->taken.size(), block->inputs));
    }
    for (const auto& [holder, version] : block->versions) {
      if (hash_of(device_(holder).sum_in_memory(sum.block, vote.step)) == sum.hash) continue;
      report("S-8", who, vote.step, sum.block,
             fmt::format("holder {} has not the gradient that is voted for in its memory",
                         holder.value));
    }
    if (vote.step <= reference_.steps() && sum.hash != reference_.sum_hash(vote.step, sum.block)) {
      report("S-11", who, vote.step, sum.block,
             "the sum is not the reference's, though its inputs were pure");
    }
    block->voted = vote.step;
    block->voted_hash = sum.hash;
    block->taken.clear();
  }
}

void invariants::record_seen(member_id who, const protocol::record_notice& notice) {
  ++checks_;
  const protocol::decision_record& record = notice.record;
  seen_[who] = record.step;
  if (record.step >= 1 && record.step <= reference_.steps() &&
      record == reference_.record(record.step)) {
    return;
  }
  report("S-4", who, record.step, {},
         fmt::format("the record (updates {}, scale {}, rate {}, loss {}) is not the step's",
                     record.updates, record.scale, record.lr, record.loss));
}

void invariants::block_applied(member_id who, block_id id, std::uint64_t version) {
  ++checks_;
  placed* block = find(id);
  if (block == nullptr) return;
  const auto at = block->versions.find(who);
  if (at == block->versions.end()) {
    return report("S-2", who, version, id, "a member updated a block that it does not hold");
  }
  if (at->second + 1 != version) {
    report("S-2", who, version, id, fmt::format("updated from version {}", at->second));
  }
  if (seen_[who] < version) report("S-2", who, version, id, "updated without the step's record");
  const toy_computation& device = device_(who);
  if (block->voted != version || hash_of(device.sum_in_memory(id, version)) != block->voted_hash) {
    report("S-2", who, version, id, "updated with another gradient than was voted for");
  }
  if (!same_bits(device.state(id), reference_.state(version, id))) {
    explain(who, id, version, device.state(id));
  }
  at->second = version;
  for (const auto& [holder, other] : block->versions) {
    const std::uint64_t apart = std::max(other, version) - std::min(other, version);
    if (apart <= 1) continue;
    report("S-9", who, version, id, fmt::format("holder {} is at version {}", holder.value, other));
  }
}

void invariants::explain(member_id who, block_id id, std::uint64_t version,
                         const toy_state& state) {
  toy_state twice = reference_.state(version, id);
  apply(reference_.record(version), device_(who).sum_in_memory(id, version), twice);
  if (same_bits(state, reference_.state(version - 1, id))) {
    return report("S-2", who, version, id, "the update was skipped, the state is as before");
  }
  if (same_bits(state, twice)) return report("S-2", who, version, id, "updated twice");
  report("S-1", who, version, id, "the state is not the reference's at this version");
}

void invariants::committed(member_id who, std::uint64_t step) {
  ++checks_;
  const bool stable = std::ranges::any_of(blocks_, [&](const auto& entry) {
    return std::ranges::all_of(entry.second.versions,
                               [&](const auto& holder) { return seen_[holder.first] >= step; });
  });
  if (!stable) {
    report("S-6", who, step, {}, "announced before all holders of some block saw its record");
  }
}

void invariants::layer_computed(member_id who, std::uint64_t step, std::uint32_t layer) {
  ++checks_;
  const toy_computation& device = device_(who);
  const auto check = [&](block_id id) {
    if (same_bits(device.state(id).parameters, reference_.state(step - 1, id).parameters)) return;
    report("S-10", who, step, id,
           fmt::format("layer {} is computed from parameters that are not version {}", layer,
                       step - 1));
  };
  for (std::uint32_t b = 0; b < toy_.blocks; ++b) check({layer, b});
  if (toy_.tied && layer + 1 == toy_.layers) check({0, 0});
}

void invariants::check_end(const memory_store& store) {
  const std::uint64_t last = reference_.steps();
  const auto saved = store.saves.find(last);
  if (saved == store.saves.end()) return report("S-20", {}, last, {}, "nothing was saved");
  for (std::uint32_t layer = 0; layer < toy_.layers; ++layer) {
    for (std::uint32_t b = 0; b < toy_.blocks; ++b) {
      ++checks_;
      const auto it = saved->second.blocks.find({layer, b});
      if (it == saved->second.blocks.end()) {
        report("S-20", {}, last, {layer, b}, "the block was not saved");
      } else if (!same_bits(it->second, reference_.state(last, {layer, b}))) {
        report("S-20", {}, last, {layer, b}, "what was saved is not the reference's");
      }
    }
  }
}

}  // namespace troupe::actors::sim
