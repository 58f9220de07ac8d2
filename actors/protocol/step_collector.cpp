#include "actors/protocol/step_collector.hpp"

#include <algorithm>
#include <string>

#include "config/base/tree.hpp"

namespace troupe::actors::protocol {
namespace {

error wrong(std::uint64_t step, member_id from, const std::string& what) {
  return {exit_code::defect,
          "step " + std::to_string(step) + ", member " + std::to_string(from.value) + ": " + what};
}

bool same_content(const vote& a, const vote& b) { return a.sums == b.sums && a.losses == b.losses; }

}  // namespace

step_collector::step_collector(const plan& p, const std::vector<std::uint32_t>& blocks_of_layers)
    : blocks_of_layers_(blocks_of_layers),
      virtual_ranks_(p.virtual_ranks),
      step_(p.base + 1),
      stable_(p.base) {
  for (const plan_member& m : p.members) {
    recorded_[m.id] = p.base;
    if (m.leaves > 0) voters_.insert(m.id);
  }
  std::set<std::set<member_id>> distinct;
  for (const placed_blocks& part : p.placement) {
    voters_.insert(part.primary);
    std::set<member_id> holders(part.backups.begin(), part.backups.end());
    holders.insert(part.primary);
    distinct.insert(std::move(holders));
  }
  holder_sets_.assign(distinct.begin(), distinct.end());
}

std::vector<member_id> step_collector::waiting_for() const {
  std::vector<member_id> missing;
  for (const member_id id : voters_) {
    if (!votes_.contains(id)) missing.push_back(id);
  }
  return missing;
}

result<std::optional<step_votes>> step_collector::add(member_id from, const vote& v) {
  if (!voters_.contains(from)) return wrong(v.step, from, "a vote of a member that has none");
  if (v.step != step_) {
    return wrong(v.step, from, "a vote while step " + std::to_string(step_) + " is collected");
  }
  const auto [at, fresh] = votes_.emplace(from, v);
  if (!fresh) {
    if (same_content(at->second, v)) return std::optional<step_votes>();
    return wrong(v.step, from, "two different votes in one step: its memory or its code is broken");
  }
  if (votes_.size() < voters_.size()) return std::optional<step_votes>();
  result<step_votes> sums = sum_up();
  if (!sums) return sums.failure();
  return std::optional(*sums);
}

result<step_votes> step_collector::sum_up() const {
  std::map<block_id, double> squares;
  std::map<std::uint32_t, leaf_loss> losses;
  for (const auto& [from, v] : votes_) {
    for (const block_sum& s : v.sums) {
      if (!squares.emplace(s.block, s.squares).second) {
        return wrong(step_, from, "voted for a block that another member voted for");
      }
    }
    for (const leaf_loss& l : v.losses) {
      if (!losses.emplace(l.leaf, l).second) {
        return wrong(step_, from, "computed a virtual rank that another member computed");
      }
    }
  }
  std::size_t blocks = 0;
  for (const std::uint32_t count : blocks_of_layers_) blocks += count;
  ensure(squares.size() == blocks && losses.size() == virtual_ranks_,
         "a plan's votes do not cover all blocks and virtual ranks");
  // Both maps walk in rising order: the order of the trees' leaves.
  std::vector<double> by_block, loss_sums, tokens;
  for (const auto& [block, value] : squares) by_block.push_back(value);
  for (const auto& [leaf, loss] : losses) {
    loss_sums.push_back(loss.loss_sum);
    tokens.push_back(loss.tokens);
  }
  return step_votes{
      .loss_sum = tree_sum(loss_sums), .tokens = tree_sum(tokens), .squares = tree_sum(by_block)};
}

void step_collector::decided() {
  ensure(votes_.size() == voters_.size(), "a step was decided without all votes");
  votes_.clear();
  ++step_;
}

std::optional<std::uint64_t> step_collector::recorded(member_id by, std::uint64_t step) {
  const auto it = recorded_.find(by);
  if (it == recorded_.end() || it->second >= step) return std::nullopt;
  it->second = step;
  if (step <= stable_) return std::nullopt;
  const bool stable = std::ranges::any_of(holder_sets_, [&](const std::set<member_id>& holders) {
    return std::ranges::all_of(holders, [&](member_id h) { return recorded_.at(h) >= step; });
  });
  if (!stable) return std::nullopt;
  stable_ = step;
  return step;
}

}  // namespace troupe::actors::protocol
