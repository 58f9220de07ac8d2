// Whom a member says something to over the control lane, and whom it watches. Gradients and
// parameters need no control link, so a member of a wide world has few: the coordinator, those that
// hold a block together with it, and two on the ring of members that watch each other.
#pragma once

#include <vector>

#include "actors/protocol/plan.hpp"

namespace troupe::actors::protocol {

// Sorted, without the member itself. Symmetric: of two members each is the other's neighbour.
std::vector<member_id> neighbours(const plan& p, member_id self);

// To whom it sends signs of life and whose it expects: the coordinator (all members, for the
// coordinator itself) and its two neighbours on the ring. Symmetric as well.
std::vector<member_id> watched(const plan& p, member_id self);

}  // namespace troupe::actors::protocol
