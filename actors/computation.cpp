#include "actors/computation.hpp"

namespace troupe::actors {

std::vector<std::uint32_t> world_shape::blocks_of_layers() const {
  std::vector<std::uint32_t> counts;
  for (const auto& layer : layers) counts.push_back(static_cast<std::uint32_t>(layer.size()));
  return counts;
}

bool world_shape::has(block_id block) const {
  return block.layer < layers.size() && block.block < layers[block.layer].size();
}

}  // namespace troupe::actors
