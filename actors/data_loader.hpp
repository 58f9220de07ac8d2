// Fetches the samples that the plan gives a rank, one step ahead of the one that is computed. It
// keeps nothing, so it can be respawned at any time.
#pragma once

#include <caf/all.hpp>

#include "actors/generation_context.hpp"

namespace troupe::actors {

// Answers load_step with step_loaded to the rank.
caf::actor spawn_data_loader(caf::event_based_actor* parent, shared_context around);

}  // namespace troupe::actors
