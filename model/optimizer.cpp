#include "model/optimizer.hpp"

#include <algorithm>

#include "compute/math.hpp"

namespace troupe::model {

float bias_correction(double beta, std::uint64_t updates) {
  return static_cast<float>(1.0 - compute::math::pow(beta, static_cast<double>(updates)));
}

void update_block(compute::ops& ops, const layer_layout& layer, std::size_t block,
                  const adamw_settings& settings, const update_scalars& scalars,
                  const block_values& values) {
  const std::size_t first = block * block_elements;
  const std::size_t last = first + layer.block_size(block);
  for (const tensor_info& tensor : layer.tensors) {
    const std::size_t begin = std::max(first, tensor.offset);
    const std::size_t end = std::min(last, tensor.offset + tensor.size);
    if (begin >= end) continue;
    const std::size_t size = end - begin, at = begin - first;
    ops.adamw({.size = size,
               .gradient = values.gradient.part(at, size),
               .parameters = values.parameters.part(at, size),
               .first_moment = values.first_moment.part(at, size),
               .second_moment = values.second_moment.part(at, size),
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
