#include "actors/sim/invariants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "actors/plan_text.hpp"

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

invariants::one& invariants::at(member_id who) {
  one& m = members_[who];
  const incarnation now = life_ ? life_(who) : incarnation(1);
  if (m.life != now) {
    m = {};
    m.life = now;
  }
  return m;
}

invariants::known_plan* invariants::plan_of(member_id who) {
  const one& m = at(who);
  return m.plan ? &plans_.at(*m.plan) : nullptr;
}

invariants::placed* invariants::find(member_id who, block_id block) {
  known_plan* in = plan_of(who);
  if (in == nullptr) return nullptr;
  const auto it = in->blocks.find(block);
  return it == in->blocks.end() ? nullptr : &it->second;
}

// Is the member that lives now the one that the plan lists?
bool invariants::same_life(const known_plan& in, member_id who) const {
  const protocol::plan_member* m = in.plan.find(who);
  return m != nullptr && (!life_ || life_(who) == m->life);
}

void invariants::must_not_have_promised(member_id who, std::uint64_t step, const char* what) {
  const one& m = at(who);
  if (!m.plan || m.promised <= *m.plan) return;
  report("S-5", who, step, {},
         fmt::format("it {} in plan {} after it had promised plan {}", what, m.plan->value,
                     m.promised.value));
}

void invariants::promised(member_id who, generation next) {
  ++checks_;
  one& m = at(who);
  m.promised = std::max(m.promised, next);
}

void invariants::plan_adopted(member_id who, const protocol::plan& plan) {
  ++checks_;
  one& m = at(who);
  if (m.plan && plan.number <= *m.plan) {
    report("S-3", who, plan.base, {},
           fmt::format("plan {} was adopted after plan {}", plan.number.value, m.plan->value));
  }
  const auto known = plans_.find(plan.number);
  if (known == plans_.end()) {
    first_of_plan(plan);
  } else if (!(known->second.plan == plan)) {
    report("S-3", who, plan.base, {}, fmt::format("there are two plans {}", plan.number.value));
  }
  m.plan = plan.number;
  m.promised = std::max(m.promised, plan.number);
  m.seen = plan.base;
  for (const auto& [id, block] : plans_.at(plan.number).blocks) {
    if (std::ranges::find(block.holders, who) == block.holders.end()) continue;
    if (plan.verdict == "start") m.versions[id] = plan.base;
    const auto version = m.versions.find(id);
    const bool there = version != m.versions.end() &&
                       (version->second == plan.base || version->second + 1 == plan.base);
    if (!there) {
      report("S-7", who, plan.base, id,
             fmt::format("plan {} lists it as a holder, but it is at version {}", plan.number.value,
                         version == m.versions.end() ? -1 : static_cast<long>(version->second)));
    }
  }
}

void invariants::first_of_plan(const protocol::plan& plan) {
  if (!plans_.empty()) {
    const protocol::plan& before = plans_.rbegin()->second.plan;
    if (plan.number.value == before.number.value + 1 &&
        plan.parent != plan_hash(print_plan(before))) {
      report("S-3", {}, plan.base, {}, "a plan does not name the one before it");
    }
  }
  if (plan.number > announced_in_ && plan.base < announced_) {
    report("S-6", {}, plan.base, {},
           fmt::format("plan {} goes back behind step {}, which was announced", plan.number.value,
                       announced_));
  }
  known_plan& fresh = plans_[plan.number];
  fresh.plan = plan;
  std::size_t nodes = 0;
  for (const protocol::plan_member& m : plan.members) nodes += protocol::nodes_of(plan, m).size();
  const world_shape shape = shape_of(toy_);
  for (const protocol::placed_blocks& part : plan.placement) {
    for (std::uint32_t i = 0; i < part.blocks; ++i) {
      const block_id id{part.layer, part.first_block + i};
      placed& block = fresh.blocks[id];
      block.holders = {part.primary};
      block.holders.insert(block.holders.end(), part.backups.begin(), part.backups.end());
      block.inputs = nodes * shape.layers.at(id.layer).at(id.block).sources.size();
      block.voted = plan.base;
    }
  }
}

void invariants::node_taken(member_id who, std::uint64_t step, const node_key& key) {
  ++checks_;
  must_not_have_promised(who, step, "took a gradient node");
  placed* block = find(who, key.block);
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
  must_not_have_promised(who, step, "acknowledged a gradient");
  const auto& versions = at(who).versions;
  const auto version = versions.find(id);
  if (version == versions.end() || version->second + 1 == step) return;
  report("S-9", who, step, id,
         fmt::format("a backup at version {} says that it holds this step's gradient",
                     version->second));
}

void invariants::voted(member_id who, const protocol::vote& vote) {
  must_not_have_promised(who, vote.step, "voted");
  known_plan* in = plan_of(who);
  if (in != nullptr) {
    const std::string numerics = device_(who).numerics_class();
    if (in->numerics.empty()) in->numerics = numerics;
    if (numerics != in->numerics) {
      report("S-19", who, vote.step, {},
             fmt::format("it computes as {}, another member as {}", numerics, in->numerics));
    }
  }
  for (const protocol::block_sum& sum : vote.sums) {
    ++checks_;
    placed* block = find(who, sum.block);
    if (block == nullptr) continue;
    if (vote.step == block->voted && sum.hash != block->voted_hash) {
      report("S-2", who, vote.step, sum.block, "two gradients were voted for in one step");
    }
    if (block->taken.size() != block->inputs) {
      report(
          "S-11", who, vote.step, sum.block,
          fmt::format("a vote for a sum of {} nodes, of {}", block->taken.size(), block->inputs));
    }
    for (const member_id holder : block->holders) {
      if (!same_life(*in, holder)) continue;  // it was killed meanwhile
      if (hash_of(device_(holder).sum_in_memory(sum.block, vote.step)) == sum.hash) continue;
      // One that has gone on to a later plan may do the step again already.
      if (at(holder).plan != at(who).plan) continue;
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
  must_not_have_promised(who, record.step, "saw a record");
  at(who).seen = record.step;
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
  one& m = at(who);
  const auto held = m.versions.find(id);
  if (held == m.versions.end()) {
    return report("S-2", who, version, id, "a member updated a block that it does not hold");
  }
  if (held->second + 1 != version) {
    report("S-2", who, version, id, fmt::format("updated from version {}", held->second));
  }
  if (m.seen < version) report("S-2", who, version, id, "updated without the step's record");
  const toy_computation& device = device_(who);
  if (device.is_torn(id)) {
    return report("S-16", who, version, id, "the update counts, and still runs");
  }
  if (version <= reference_.steps() &&
      hash_of(device.sum_in_memory(id, version)) != reference_.sum_hash(version, id)) {
    report("S-2", who, version, id, "updated with another gradient than was voted for");
  }
  if (!same_bits(device.state(id), reference_.state(version, id))) {
    explain(who, id, version, device.state(id));
  }
  held->second = version;
  const known_plan* in = plan_of(who);
  const placed* block = find(who, id);
  if (block == nullptr) return;
  for (const member_id holder : block->holders) {
    if (!same_life(*in, holder) || at(holder).plan != m.plan) continue;
    const std::uint64_t other = at(holder).versions[id];
    const std::uint64_t apart = std::max(other, version) - std::min(other, version);
    if (apart <= 1) continue;
    report("S-9", who, version, id, fmt::format("holder {} is at version {}", holder.value, other));
  }
}

void invariants::copy_verified(member_id who, block_id id, std::uint64_t version) {
  ++checks_;
  at(who).versions[id] = version;
  if (device_(who).is_torn(id)) {
    return report("S-16", who, version, id, "a copy counts while the block is updated");
  }
  if (!same_bits(device_(who).state(id), reference_.state(version, id))) {
    report("S-17", who, version, id, "a copy counts that is not the reference's state");
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
  must_not_have_promised(who, step, "announced a step");
  const known_plan* in = plan_of(who);
  if (in == nullptr) return;
  announced_ = std::max(announced_, step);
  announced_in_ = in->plan.number;
  if (step <= in->plan.base) return;  // the plan made it stable
  // A holder of this plan that has gone on to a later one, or whose process is gone, has been asked
  // for what it saw, or never will be.
  const bool stable = std::ranges::any_of(in->blocks, [&](const auto& entry) {
    return std::ranges::all_of(entry.second.holders, [&](const member_id holder) {
      return !same_life(*in, holder) || at(holder).seen >= step;
    });
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
    if (device.is_torn(id)) {
      return report("S-16", who, step, id,
                    fmt::format("layer {} is computed while this block is updated", layer));
    }
    report("S-10", who, step, id,
           fmt::format("layer {} is computed from parameters that are not version {}", layer,
                       step - 1));
  };
  for (std::uint32_t b = 0; b < toy_.blocks; ++b) check({layer, b});
  if (toy_.tied && layer + 1 == toy_.layers) check({0, 0});
}

void invariants::check_end(const memory_store& store) {
  const std::uint64_t last = reference_.steps();
  if (!store.not_fenced.empty()) return report("S-14", {}, last, {}, store.not_fenced);
  if (!store.wrong_line.empty()) return report("S-15", {}, last, {}, store.wrong_line);
  if (store.lines.size() != last) {
    return report("S-15", {}, last, {}, fmt::format("{} steps were recorded", store.lines.size()));
  }
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
