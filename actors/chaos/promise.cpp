#include "actors/chaos/promise.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors::chaos {
namespace {

using members = std::set<member_id>;

// The first block that none of them holds, in words; "" if there is none.
std::string uncovered(const world_view& world, const members& left,
                      const std::set<std::uint32_t>& may_lose) {
  std::uint32_t number = 0;
  for (const protocol::placed_blocks& placed : world.plan.placement) {
    for (std::uint32_t b = 0; b < placed.blocks; ++b, ++number) {
      const protocol::block_id block{placed.layer, placed.first_block + b};
      const auto has = [&](member_id m) {
        return left.contains(m) && !world.unfinished.contains({m, block});
      };
      if (has(placed.primary) || std::ranges::any_of(placed.backups, has)) continue;
      if (may_lose.contains(number)) continue;
      return fmt::format("block {} (layer {}, block {}) would be without a holder", number,
                         block.layer, block.block);
    }
  }
  return "";
}

// Who still reaches each other both ways, directly or over others.
std::vector<members> groups(const members& all, const std::set<link>& cut) {
  std::vector<members> found;
  members open = all;
  while (!open.empty()) {
    members group;
    std::vector<member_id> next = {*open.begin()};
    while (!next.empty()) {
      const member_id m = next.back();
      next.pop_back();
      if (!open.erase(m)) continue;
      group.insert(m);
      for (const member_id other : open) {
        if (!cut.contains({m, other}) && !cut.contains({other, m})) next.push_back(other);
      }
    }
    found.push_back(std::move(group));
  }
  return found;
}

}  // namespace

std::string breaks_promise(const world_view& world, const strike& next,
                           const std::set<std::uint32_t>& may_lose) {
  members left;
  for (const protocol::plan_member& m : world.plan.members) {
    if (world.alive.contains(m.id) && std::ranges::find(next.lost, m.id) == next.lost.end()) {
      left.insert(m.id);
    }
  }
  if (next.cut.empty()) return uncovered(world, left, may_lose);
  const std::set<link> cut(next.cut.begin(), next.cut.end());
  std::string why = "nobody would be left";
  for (members group : groups(left, cut)) {
    // Two who cannot talk while others reach both: one of them will have to go.
    std::string trouble = uncovered(world, group, may_lose);
    for (const link& l : cut) {
      if (!trouble.empty()) break;
      if (!group.contains(l.from) || !group.contains(l.to)) continue;
      for (const member_id gone : {l.from, l.to}) {
        members others = group;
        others.erase(gone);
        if (trouble.empty()) trouble = uncovered(world, others, may_lose);
      }
    }
    if (trouble.empty()) return "";
    why = trouble;
  }
  return why;
}

std::set<std::pair<member_id, protocol::block_id>> new_copies(const protocol::plan& before,
                                                              const protocol::plan& after) {
  std::set<std::pair<member_id, protocol::block_id>> had, missing;
  const auto each = [](const protocol::plan& p, const auto& see) {
    for (const protocol::placed_blocks& placed : p.placement) {
      for (std::uint32_t b = 0; b < placed.blocks; ++b) {
        const protocol::block_id block{placed.layer, placed.first_block + b};
        see(placed.primary, block);
        for (const member_id m : placed.backups) see(m, block);
      }
    }
  };
  each(before, [&](member_id m, protocol::block_id b) { had.insert({m, b}); });
  each(after, [&](member_id m, protocol::block_id b) {
    // Another life in the same slot has nothing of what the one before had.
    const auto* then = before.find(m);
    const auto* now = after.find(m);
    const bool same_life = then != nullptr && now != nullptr && then->life == now->life;
    if (!same_life || !had.contains({m, b})) missing.insert({m, b});
  });
  return missing;
}

}  // namespace troupe::actors::chaos
