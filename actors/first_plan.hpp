// Plan 0's input: who came, what is trained, and the step to begin after.
#pragma once

#include "actors/computation.hpp"
#include "actors/roll_call.hpp"
#include "actors/worker.hpp"

namespace troupe::actors {

protocol::planner_input first_plan(const worker_settings& settings, const roll_call& came,
                                   const world_shape& shape, std::uint64_t base);

}  // namespace troupe::actors
