#include "actors/protocol/plan_change.hpp"

#include <algorithm>

#include "actors/protocol/planner.hpp"

namespace troupe::actors::protocol {
namespace {

// Holders of a block, the primary first.
std::vector<member_id> holders_in(const placed_blocks& part) {
  std::vector<member_id> holders{part.primary};
  holders.insert(holders.end(), part.backups.begin(), part.backups.end());
  return holders;
}

const placed_blocks* entry_of(const plan& p, block_id block) {
  const auto after =
      std::ranges::upper_bound(p.placement, block, {}, [](const placed_blocks& part) {
        return block_id{part.layer, part.first_block};
      });
  if (after == p.placement.begin()) return nullptr;
  const placed_blocks& part = *std::prev(after);
  return part.layer == block.layer && block.block < part.first_block + part.blocks ? &part
                                                                                   : nullptr;
}

void add_new(std::vector<member_id>& to, const std::vector<member_id>& more) {
  for (member_id id : more) {
    if (std::ranges::find(to, id) == to.end()) to.push_back(id);
  }
}

}  // namespace

std::vector<placed_blocks> block_by_block(const plan& p) {
  std::vector<placed_blocks> blocks;
  for (const placed_blocks& part : p.placement) {
    for (std::uint32_t i = 0; i < part.blocks; ++i) {
      placed_blocks& entry = blocks.emplace_back(part);
      entry.first_block = part.first_block + i;
      entry.blocks = 1;
    }
  }
  return blocks;
}

std::variant<plan, std::vector<block_id>> publishable(const plan& aim, const plan& present,
                                                      const has_block& has,
                                                      const std::string& reason) {
  std::vector<placed_blocks> blocks = block_by_block(aim);
  std::vector<block_id> uncovered;
  for (placed_blocks& entry : blocks) {
    const block_id block{entry.layer, entry.first_block};
    const std::vector<member_id> wanted = holders_in(entry);
    const placed_blocks* now = entry_of(present, block);
    // In the order in which they may become primary.
    std::vector<member_id> in_turn{entry.primary};
    if (now != nullptr) add_new(in_turn, {now->primary});
    add_new(in_turn, wanted);
    if (now != nullptr) add_new(in_turn, now->backups);
    for (const plan_member& m : aim.members) add_new(in_turn, {m.id});
    std::erase_if(in_turn,
                  [&](member_id id) { return aim.find(id) == nullptr || !has(id, block); });
    if (in_turn.empty()) {
      uncovered.push_back(block);
      continue;
    }
    entry.primary = in_turn.front();
    // Backups: those that the aim wants come first.
    std::stable_partition(in_turn.begin() + 1, in_turn.end(), [&](member_id id) {
      return std::ranges::find(wanted, id) != wanted.end();
    });
    if (in_turn.size() > wanted.size()) in_turn.resize(wanted.size());
    entry.backups.assign(in_turn.begin() + 1, in_turn.end());
    std::ranges::sort(entry.backups);
  }
  if (!uncovered.empty()) return uncovered;
  plan p = aim;
  p.placement = joined(blocks);
  give_reason(p, reason);
  return p;
}

std::vector<block_copy> copies_to(const plan& aim, const plan& published) {
  std::vector<block_copy> copies;
  for (const placed_blocks& entry : block_by_block(aim)) {
    const block_id block{entry.layer, entry.first_block};
    const placed_blocks* now = entry_of(published, block);
    if (now == nullptr) continue;
    const std::vector<member_id> have = holders_in(*now);
    for (member_id id : holders_in(entry)) {
      if (std::ranges::find(have, id) == have.end()) copies.push_back({block, now->primary, id});
    }
  }
  std::ranges::sort(copies);
  return copies;
}

}  // namespace troupe::actors::protocol
