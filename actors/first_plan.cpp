#include "actors/first_plan.hpp"

#include <fmt/format.h>

namespace troupe::actors {

protocol::planner_input first_plan(const worker_settings& settings, const roll_call& came,
                                   const world_shape& shape, std::uint64_t base) {
  protocol::planner_input input;
  input.run_id = settings.me.run_id;
  input.candidates = came.candidates();
  input.layers = shape.elements_of_blocks();
  input.virtual_ranks = settings.virtual_ranks;
  input.backups = settings.backups;
  input.spares = settings.spares;
  input.coordinator = settings.me.wish;
  input.base = base;
  input.reason = fmt::format("start with {} members", input.candidates.size());
  return input;
}

}  // namespace troupe::actors
