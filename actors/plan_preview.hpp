// The plan that N workers of this machine would begin with, and what it costs each of them, from
// the configuration alone: `troupe plan` prints it before anything is started.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/computation.hpp"
#include "actors/protocol/plan_cost.hpp"

namespace troupe::actors {

// Elements of every block, and how many of them have a second gradient from the head.
protocol::model_sizes sizes_of(const world_shape& shape);

struct preview_request {
  std::vector<int> threads;  // of each worker; a worker is taken to be as fast as it has threads
  std::uint32_t virtual_ranks = 1, backups = 1;
};

struct plan_preview {
  protocol::plan plan;
  std::vector<protocol::member_cost> costs;  // by member
};
// Requires at least one worker, with positive numbers of threads.
plan_preview preview_plan(const protocol::model_sizes& sizes, const preview_request& request);

}  // namespace troupe::actors
