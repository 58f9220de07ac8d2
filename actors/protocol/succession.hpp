// Who collects the promises for the next plan, and when. The coordinator does at once. If it is
// gone, the others do one after the other, in the order of their ids, each a while after the one
// before: so usually one begins and nobody races it, and if it dies too the next one follows. Two
// who collect at a time do no harm, as one of them wins the chain.
#pragma once

#include <chrono>
#include <optional>
#include <set>

#include "actors/protocol/plan.hpp"

namespace troupe::actors::protocol {

// How long `self` waits before it collects, counted from when it knew that somebody has to;
// nothing: it never collects, because it does not see the run directory. `gone`: who cannot.
std::optional<std::chrono::nanoseconds> turn_to_collect(const plan& p, member_id self,
                                                        const std::set<member_id>& gone,
                                                        std::chrono::nanoseconds between);

}  // namespace troupe::actors::protocol
