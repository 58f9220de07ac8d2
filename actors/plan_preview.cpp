#include "actors/plan_preview.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/protocol/planner.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {

protocol::model_sizes sizes_of(const model::model_layout& layout, bool tied) {
  protocol::model_sizes sizes;
  for (const model::layer_layout& layer : layout) {
    const model::tensor_info* table = tied && layer.kind == model::layer_kind::embedding
                                          ? layer.find(model::tensor_role::token_table)
                                          : nullptr;
    auto& blocks = sizes.emplace_back();
    for (std::size_t b = 0; b < layer.blocks(); ++b) {
      protocol::block_sizes& block = blocks.emplace_back();
      block.elements = layer.block_size(b);
      if (table == nullptr) continue;
      const std::size_t begin = b * model::block_elements, end = begin + block.elements;
      const std::size_t from = std::max(begin, table->offset);
      const std::size_t to = std::min(end, table->offset + table->size);
      if (from < to) block.tied = to - from;
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
