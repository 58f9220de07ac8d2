// The update of a layer by AdamW, and the norm of its gradient. Both go block by block, so that a
// block's holder computes what a lone worker computes.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/executor.hpp"
#include "model/layout.hpp"
#include "model/model_state.hpp"

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

// Updates one block of a layer. gradient: the layer's flat sum. Decay touches tensors of two or
// more dimensions only (nanoGPT's and llm.c's habit).
void update_block(compute::ops& ops, const layer_layout& layer, std::size_t block,
                  compute::const_view gradient, const adamw_settings& settings,
                  const update_scalars& scalars, layer_state& state);

// Sum of squares of each block of a layer's gradient, into sums (float64, one a block).
void block_squares(compute::ops& ops, const layer_layout& layer, compute::const_view gradient,
                   compute::view sums);

}  // namespace troupe::model
