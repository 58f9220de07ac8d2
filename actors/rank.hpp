// Takes one step after another on one member: has the samples loaded, lets its stage compute, puts
// the member's vote together, sees the decision, has the shards apply it, and begins the next step
// as soon as its layers are there. Between two steps it measures validation or writes its part of a
// save, if the record asks for it.
#pragma once

#include <caf/all.hpp>

#include "actors/generation_context.hpp"
#include "actors/run_store.hpp"

namespace troupe::actors {

// Spawns stage, data loader and optimizer shards below it and enters the shards into the router;
// `go` begins the first step. An actor of CAF begins with its first turn, not when it is spawned.
caf::actor spawn_rank(caf::event_based_actor* parent, shared_context around, run_store& store);

}  // namespace troupe::actors
