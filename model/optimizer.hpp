// The update of a layer by AdamW, and the norm of its gradient. Both go block by block, so that a
// block's holder computes what a lone worker computes.
#pragma once

#include <cstdint>

#include "compute/executor.hpp"
#include "model/layout.hpp"

namespace troupe::model {

struct adamw_settings {
  double beta1, beta2, epsilon, weight_decay;
};

// Everything about one update that is the same for all parameters, as the decision record carries
// it.
struct update_scalars {
  float scale;  // clip factor / token count; multiplies the gradient sums
  float lr;
  float correction1, correction2;  // 1 - beta^updates
};

// 1 - beta^updates, updates counted with the one being made.
float bias_correction(double beta, std::uint64_t updates);

// One block of a layer: each as long as the block.
struct block_values {
  compute::const_view gradient;  // the sum, as the scale expects it
  compute::view parameters, first_moment, second_moment;
};

// Updates block `block` of a layer. Decay touches tensors of two or more dimensions only (nanoGPT's
// and llm.c's habit).
void update_block(compute::ops& ops, const layer_layout& layer, std::size_t block,
                  const adamw_settings& settings, const update_scalars& scalars,
                  const block_values& values);

// Sum of squares of each block of a layer's gradient, into sums (float64, one a block).
void block_squares(compute::ops& ops, const layer_layout& layer, compute::const_view gradient,
                   compute::view sums);

}  // namespace troupe::model
