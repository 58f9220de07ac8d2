// The guard of `inside_promise`: would every block still have a holder that lives, can be reached
// and has the block whole, if this fault came now? Injected faults stay inside of what the run
// promises to survive, so that whatever goes wrong then is a defect; without the guard a random
// sequence sooner or later kills both holders of a block and proves nothing.
//
// Conservative: who is stopped or cut off counts as lost, and a copy counts only once it is whole.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "actors/chaos/target_lookup.hpp"

namespace troupe::actors::chaos {

struct strike {
  std::vector<member_id> lost;
  std::vector<link> cut;  // now and already
};

// "" if the promise still covers it; else which block would be without a holder. `may_lose`:
// blocks, counted through the model, that do not matter.
std::string breaks_promise(const world_view& world, const strike& next,
                           const std::set<std::uint32_t>& may_lose);

// The copies that a new plan asks for: who holds a block now that did not before.
std::set<std::pair<member_id, protocol::block_id>> new_copies(const protocol::plan& before,
                                                              const protocol::plan& after);

}  // namespace troupe::actors::chaos
