#include "model/optimizer.hpp"

#include <algorithm>

#include "compute/math.hpp"

namespace troupe::model {

float bias_correction(double beta, std::uint64_t updates) {
  return static_cast<float>(1.0 - compute::math::pow(beta, static_cast<double>(updates)));
}

void update_block(compute::ops& ops, const layer_layout& layer, std::size_t block,
                  compute::const_view gradient, const adamw_settings& settings,
                  const update_scalars& scalars, layer_state& state) {
  const std::size_t first = block * block_elements;
  const std::size_t last = first + layer.block_size(block);
  for (const tensor_info& tensor : layer.tensors) {
    const std::size_t begin = std::max(first, tensor.offset);
    const std::size_t end = std::min(last, tensor.offset + tensor.size);
    if (begin >= end) continue;
    const std::size_t size = end - begin;
    ops.adamw({.size = size,
               .gradient = gradient.part(begin, size),
               .parameters = state.parameters.part(begin, size),
               .first_moment = state.first_moment.part(begin, size),
               .second_moment = state.second_moment.part(begin, size),
               .scale = scalars.scale,
               .lr = scalars.lr,
               .beta1 = static_cast<float>(settings.beta1),
               .beta2 = static_cast<float>(settings.beta2),
               .epsilon = static_cast<float>(settings.epsilon),
               .weight_decay = tensor.decays() ? static_cast<float>(settings.weight_decay) : 0.0f,
               .correction1 = scalars.correction1,
               .correction2 = scalars.correction2});
  }
}

void block_squares(compute::ops& ops, const layer_layout& layer, compute::const_view gradient,
                   compute::view sums) {
  for (std::size_t block = 0; block < layer.blocks(); ++block) {
    ops.sum_squares(gradient.part(block * block_elements, layer.block_size(block)),
                    sums.part(block, 1));
  }
}

}  // namespace troupe::model
