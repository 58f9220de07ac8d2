// The layers that a rank computes: lets the computation run, layer by layer as their parameters are
// there, and sends each completed gradient node to the primaries of its blocks at once, while the
// layers below are still computed. In this version a rank has one stage with the whole model.
#pragma once

#include <caf/all.hpp>

#include "actors/generation_context.hpp"

namespace troupe::actors {

caf::actor spawn_stage(caf::event_based_actor* parent, shared_context around);

}  // namespace troupe::actors
