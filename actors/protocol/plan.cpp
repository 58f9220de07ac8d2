#include "actors/protocol/plan.hpp"

#include <algorithm>

#include "config/base/error.hpp"

namespace troupe::actors::protocol {
namespace {

template <class Wanted>
std::vector<block_id> blocks_where(const plan& p, Wanted wanted) {
  std::vector<block_id> found;
  for (const placed_blocks& part : p.placement) {
    if (!wanted(part)) continue;
    for (std::uint32_t i = 0; i < part.blocks; ++i) {
      found.push_back({part.layer, part.first_block + i});
    }
  }
  return found;
}

}  // namespace

const plan_member* plan::find(member_id id) const {
  const auto it = std::ranges::lower_bound(members, id, {}, &plan_member::id);
  return it != members.end() && it->id == id ? &*it : nullptr;
}

const placed_blocks& plan::holders_of(block_id block) const {
  // The last entry that begins at or before the block.
  const auto after = std::ranges::upper_bound(placement, block, {}, [](const placed_blocks& part) {
    return block_id{part.layer, part.first_block};
  });
  ensure(after != placement.begin(),
         "a plan was asked for the holders of a block it does not place");
  const placed_blocks& part = *std::prev(after);
  ensure(part.layer == block.layer && block.block < part.first_block + part.blocks,
         "a plan was asked for the holders of a block it does not place");
  return part;
}

std::vector<block_id> blocks_primary(const plan& p, member_id id) {
  return blocks_where(p, [&](const placed_blocks& part) { return part.primary == id; });
}

std::vector<block_id> blocks_backed_up(const plan& p, member_id id) {
  return blocks_where(
      p, [&](const placed_blocks& part) { return std::ranges::binary_search(part.backups, id); });
}

std::vector<tree_node> nodes_of(const plan& p, const plan_member& m) {
  return complete_nodes(m.first_leaf, m.leaves, p.virtual_ranks);
}

}  // namespace troupe::actors::protocol
