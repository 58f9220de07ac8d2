#include "actors/computation.hpp"

#include <algorithm>

namespace troupe::actors {

std::size_t world_shape::sources_of(std::uint32_t layer) const {
  std::size_t most = 0;
  for (const block_shape& block : layers.at(layer)) most = std::max(most, block.sources.size());
  return most;
}

}  // namespace troupe::actors
