#include "actors/computation.hpp"

namespace troupe::actors {

std::vector<std::uint32_t> world_shape::blocks_of_layers() const {
  std::vector<std::uint32_t> counts;
  for (const auto& layer : layers) counts.push_back(static_cast<std::uint32_t>(layer.size()));
  return counts;
}

std::vector<std::vector<std::uint32_t>> world_shape::elements_of_blocks() const {
  std::vector<std::vector<std::uint32_t>> all;
  for (const std::vector<block_shape>& layer : layers) {
    std::vector<std::uint32_t>& blocks = all.emplace_back();
    for (const block_shape& block : layer) blocks.push_back(block.elements);
  }
  return all;
}

bool world_shape::has(block_id block) const {
  return block.layer < layers.size() && block.block < layers[block.layer].size();
}

}  // namespace troupe::actors
