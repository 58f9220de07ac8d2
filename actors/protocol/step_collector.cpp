#include "actors/protocol/step_collector.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "config/base/tree.hpp"

namespace troupe::actors::protocol {
namespace {

error wrong(std::uint64_t step, member_id from, const std::string& what) {
  return {exit_code::defect,
          "step " + std::to_string(step) + ", member " + std::to_string(from.value) + ": " + what};
}

// By bits: a gradient that is not finite is the same one when it comes again.
bool same_content(const vote& a, const vote& b) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  return std::ranges::equal(a.sums, b.sums,
                            [&](const block_sum& x, const block_sum& y) {
                              return x.block == y.block && x.hash == y.hash &&
                                     bits(x.squares) == bits(y.squares);
                            }) &&
         std::ranges::equal(a.losses, b.losses, [&](const leaf_loss& x, const leaf_loss& y) {
           return x.leaf == y.leaf && bits(x.loss_sum) == bits(y.loss_sum) &&
                  bits(x.tokens) == bits(y.tokens);
         });
}

}  // namespace

step_collector::step_collector(const plan& p, const std::vector<std::uint32_t>& blocks_of_layers)
    : step_(p.base + 1), stable_(p.base) {
  std::size_t leaves = 0, blocks = 0, placed = 0;
  for (const plan_member& m : p.members) {
    recorded_[m.id] = p.base;
    ballot due{m.first_leaf, m.leaves, blocks_primary(p, m.id)};
    leaves += m.leaves;
    placed += due.blocks.size();
    if (m.leaves > 0 || !due.blocks.empty()) voters_.emplace(m.id, std::move(due));
  }
  for (const std::uint32_t count : blocks_of_layers) blocks += count;
  ensure(placed == blocks && leaves == p.virtual_ranks,
         "a plan's votes do not cover all blocks and virtual ranks");
  std::set<std::set<member_id>> distinct;
  for (const placed_blocks& part : p.placement) {
    std::set<member_id> holders(part.backups.begin(), part.backups.end());
    holders.insert(part.primary);
    distinct.insert(std::move(holders));
  }
  holder_sets_.assign(distinct.begin(), distinct.end());
}

std::vector<member_id> step_collector::waiting_for() const {
  std::vector<member_id> missing;
  for (const auto& [id, due] : voters_) {
    if (!votes_.contains(id)) missing.push_back(id);
  }
  return missing;
}

result<std::optional<step_votes>> step_collector::add(member_id from, const vote& v) {
  const auto due = voters_.find(from);
  if (due == voters_.end()) return wrong(v.step, from, "a vote of a member that has none");
  if (v.step != step_) {
    return wrong(v.step, from, "a vote while step " + std::to_string(step_) + " is collected");
  }
  if (!std::ranges::equal(v.sums, due->second.blocks, {}, &block_sum::block)) {
    return wrong(v.step, from, "its vote does not cover the blocks it is primary of, each once");
  }
  const auto next_leaf = [leaf = due->second.first_leaf](const leaf_loss& l) mutable {
    return l.leaf == leaf++;
  };
  if (v.losses.size() != due->second.leaves || !std::ranges::all_of(v.losses, next_leaf)) {
    return wrong(v.step, from, "its vote does not cover the virtual ranks it computes, each once");
  }
  const auto [at, fresh] = votes_.emplace(from, v);
  if (!fresh) {
    if (same_content(at->second, v)) return std::optional<step_votes>();
    return wrong(v.step, from, "two different votes in one step: its memory or its code is broken");
  }
  if (votes_.size() < voters_.size()) return std::optional<step_votes>();
  return std::optional(sum_up());
}

step_votes step_collector::sum_up() const {
  std::map<block_id, double> squares;
  std::map<std::uint32_t, leaf_loss> losses;
  for (const auto& [from, v] : votes_) {
    for (const block_sum& s : v.sums) squares.emplace(s.block, s.squares);
    for (const leaf_loss& l : v.losses) losses.emplace(l.leaf, l);
  }
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
  if (it == recorded_.end() || it->second >= step || step >= step_) return std::nullopt;
  it->second = step;
  std::uint64_t newest = stable_;
  for (const std::set<member_id>& holders : holder_sets_) {
    std::uint64_t least = step;
    for (const member_id h : holders) least = std::min(least, recorded_.at(h));
    newest = std::max(newest, least);
  }
  if (newest == stable_) return std::nullopt;
  return stable_ = newest;
}

}  // namespace troupe::actors::protocol
