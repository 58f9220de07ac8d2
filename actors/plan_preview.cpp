#include "actors/plan_preview.hpp"

#include <fmt/format.h>

#include "actors/protocol/planner.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {

protocol::model_sizes sizes_of(const world_shape& shape) {
  protocol::model_sizes sizes;
  for (const std::vector<block_shape>& layer : shape.layers) {
    auto& blocks = sizes.emplace_back();
    for (const block_shape& block : layer) {
      const std::uint64_t tied = block.sources.size() > 1 ? block.sources[1] : 0;
      blocks.push_back({.elements = block.elements, .tied = tied});
    }
  }
  return sizes;
}

plan_preview preview_plan(const protocol::model_sizes& sizes, const preview_request& request) {
  ensure(!request.threads.empty(), "a plan for no workers was asked for");
  protocol::planner_input in;
  std::vector<double> speeds;
  for (std::uint32_t i = 0; i < request.threads.size(); ++i) {
    ensure(request.threads[i] > 0, "a plan for a worker without threads was asked for");
    protocol::candidate& c = in.candidates.emplace_back();
    c.id = member_id(i);
    c.life = incarnation(1);
    c.name = fmt::format("worker-{}", i);
    c.host = "this machine";
    c.speed = request.threads[i];
    speeds.push_back(c.speed);
  }
  for (const auto& layer : sizes) {
    auto& blocks = in.layers.emplace_back();
    for (const protocol::block_sizes& block : layer) {
      blocks.push_back(static_cast<std::uint32_t>(block.elements));
    }
  }
  in.virtual_ranks = request.virtual_ranks;
  in.backups = request.backups;
  in.reason = "start";
  plan_preview preview;
  preview.plan = protocol::make_plan(in);
  preview.costs = protocol::predict(preview.plan, sizes, speeds);
  return preview;
}

}  // namespace troupe::actors
