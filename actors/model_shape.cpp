#include "actors/model_shape.hpp"

#include <algorithm>

namespace troupe::actors {

world_shape shape_of(const model::description& d, const model::model_layout& layout) {
  world_shape shape;
  for (const model::layer_layout& layer : layout) {
    const model::tensor_info* table = layer.find(model::tensor_role::token_table);
    const bool tied = d.tied && table != nullptr;
    std::vector<block_shape>& blocks = shape.layers.emplace_back();
    for (std::size_t b = 0; b < layer.blocks(); ++b) {
      const std::size_t begin = b * model::block_elements, size = layer.block_size(b);
      block_shape& block = blocks.emplace_back();
      block.elements = static_cast<std::uint32_t>(size);
      block.sources = {block.elements};
      if (!tied) continue;
      const std::size_t from = std::max(begin, table->offset);
      const std::size_t to = std::min(begin + size, table->offset + table->size);
      if (from >= to) continue;
      block.sources.push_back(static_cast<std::uint32_t>(to - from));
      block.tied_offset = static_cast<std::uint32_t>(from - begin);
    }
  }
  return shape;
}

}  // namespace troupe::actors
