// The numbers a run consists of: each layer's parameters and AdamW moments, as flat vectors in
// layout order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/executor.hpp"
#include "model/description.hpp"
#include "model/layout.hpp"

namespace troupe::model {

struct layer_state {
  compute::buffer parameters, first_moment, second_moment;
};

struct model_state {
  std::vector<layer_state> layers;  // as the layout
};

// All zero.
model_state allocate_state(compute::executor& device, const model_layout& layout,
                           bool with_moments);

// The first values of the elements from `first` on of a layer's flat vector: normal with the
// family's spread for matrices, 1 for norm gains, 0 for biases. An element follows from (seed,
// layer, tensor, element) alone. gpt2 scales the two matrices that end a residual branch by 1 /
// sqrt(2 L).
void initial_values(const description& d, const model_layout& layout, std::uint64_t seed,
                    std::size_t layer, std::size_t first, std::span<float> into);

// Fills all parameters with their first values.
void initialize(compute::executor& device, const description& d, const model_layout& layout,
                std::uint64_t seed, model_state& state);

}  // namespace troupe::model
