// What the tests of the chaos kit share: a plan of a few members with every block on two of them.
#pragma once

#include <string>

#include "actors/chaos/target_lookup.hpp"

namespace troupe::actors::chaos {

// Block b (one layer each) has its primary on member b and its backup on the next one.
inline protocol::plan plan_of(std::uint32_t members, std::uint32_t coordinator = 0) {
  protocol::plan p;
  p.run_id = "run";
  p.coordinator = member_id(coordinator);
  p.virtual_ranks = members;
  for (std::uint32_t m = 0; m < members; ++m) {
    protocol::plan_member one;
    one.id = member_id(m);
    one.life = incarnation(100 + m);
    one.name = "worker-" + std::to_string(m);
    one.first_leaf = m;
    one.leaves = 1;
    p.members.push_back(one);
    protocol::placed_blocks placed;
    placed.layer = m;
    placed.blocks = 1;
    placed.primary = member_id(m);
    if (members > 1) placed.backups = {member_id((m + 1) % members)};
    p.placement.push_back(placed);
  }
  return p;
}

inline world_view world_of(std::uint32_t members, std::uint32_t coordinator = 0) {
  world_view w;
  w.plan = plan_of(members, coordinator);
  for (const protocol::plan_member& m : w.plan.members) w.alive.insert(m.id);
  return w;
}

}  // namespace troupe::actors::chaos
