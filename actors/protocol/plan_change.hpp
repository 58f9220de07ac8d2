// From the present plan to the next. A plan may list as holder only who has the block, so the
// planner's aim and the plan that can be published are two things while copies are missing: after
// a loss the world goes on at once with the holders that are left, copies are made beside the
// training, and the plan after that is the aim.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "actors/protocol/plan.hpp"

namespace troupe::actors::protocol {

// Does a member of the next plan have the block's state at the plan's base, or a copy that was
// verified?
using has_block = std::function<bool(member_id, block_id)>;

// The aim with its holders cut down to those that have the blocks. The primary is the aim's if it
// has the block, else the present one, else any that has it; as many holders are kept as the aim
// has, so nothing is given up before its copy is there. `reason` is the new plan's. Blocks that
// nobody has come back instead: then there must be no plan.
std::variant<plan, std::vector<block_id>> publishable(const plan& aim, const plan& present,
                                                      const has_block& has,
                                                      const std::string& reason);

// A copy to be made on the way from a plan to its aim.
struct block_copy {
  block_id block;
  member_id from, to;
  friend auto operator<=>(const block_copy&, const block_copy&) = default;
};
// In the order of blocks. A copy comes from the primary, which knows the newest version.
std::vector<block_copy> copies_to(const plan& aim, const plan& published);

// Every block of a plan in order, one entry each.
std::vector<placed_blocks> block_by_block(const plan& p);

}  // namespace troupe::actors::protocol
