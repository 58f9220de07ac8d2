// The sizes of a model's blocks as the actors and plans see them: known from the description alone,
// so that a plan can be made, and shown, where no device is.
#pragma once

#include "actors/computation.hpp"
#include "model/layout.hpp"

namespace troupe::actors {

// A tied token table has the head's gradient besides its own.
world_shape shape_of(const model::description& d, const model::model_layout& layout);

}  // namespace troupe::actors
