// Whom a fault that is due now strikes, or why it is refused: the target looked up, who is spared,
// and the guard of inside_promise, in one pure decision. Where the target leaves a choice, those
// are preferred whose loss the run promises to survive.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/chaos/promise.hpp"
#include "actors/chaos/scenario.hpp"
#include "actors/chaos/target_lookup.hpp"

namespace troupe::actors::chaos {

struct aim_rules {
  bool inside_promise = true;
  std::set<std::uint32_t> may_lose;  // blocks
  std::vector<selector> spared;
};

// `open`: whom and what the faults that last have taken already. `at`: only this member, because it
// is the one at the fault's point. `nobody` says why it is refused.
chosen aim(const fault& f, const aim_rules& rules, const world_view& world, const strike& open,
           std::uint64_t draw, std::optional<member_id> at);

}  // namespace troupe::actors::chaos
