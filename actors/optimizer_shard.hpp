// The optimizer's part of one layer on one member: the blocks that it is primary of, or those that
// it backs up. Carries out what the state machines of protocol/held_block order: reduce, forward,
// acknowledge, apply, publish. If it throws, its blocks count as lost here.
#pragma once

#include <caf/all.hpp>

#include "actors/generation_context.hpp"

namespace troupe::actors {

enum class shard_role : std::uint8_t { primary, backup };

caf::actor spawn_optimizer_shard(caf::event_based_actor* parent, shared_context around,
                                 shard_role role, std::uint32_t layer);

}  // namespace troupe::actors
