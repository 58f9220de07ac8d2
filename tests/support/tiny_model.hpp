// Small models with nothing special about their numbers: gains away from one, biases away from
// zero, some targets that do not count. With the usual initialisation a forgotten gain or bias
// would not show. Everything follows from the seed alone.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "compute/executor.hpp"
#include "compute/random_normal.hpp"
#include "model/layout.hpp"
#include "model/model_state.hpp"

namespace troupe::tests {

inline model::description tiny_gpt2() {
  model::description d;
  d.family = model::family::gpt2;
  d.vocabulary = 97;
  d.width = 40;
  d.inner = 160;
  d.layers = 2;
  d.heads = d.kv_heads = 5;
  d.head_dim = 8;
  d.positions = 80;
  d.bias = true;
  d.tied = true;
  return d;
}

inline model::description tiny_llama() {
  model::description d;
  d.family = model::family::llama;
  d.vocabulary = 97;
  d.width = 48;
  d.inner = 88;
  d.layers = 2;
  d.heads = 6;
  d.kv_heads = 2;
  d.head_dim = 8;
  d.positions = 80;
  return d;
}

inline bool is_gain(model::tensor_role role) {
  return role == model::tensor_role::attention_norm || role == model::tensor_role::mlp_norm ||
         role == model::tensor_role::final_norm;
}

// Fills every parameter. Values are large enough that attention has a preference and losses differ
// between rows.
inline void randomize(compute::executor& device, const model::model_layout& layout,
                      std::uint64_t seed, model::model_state& state) {
  for (std::size_t l = 0; l < layout.size(); ++l) {
    std::vector<float> values(layout[l].elements);
    for (std::size_t t = 0; t < layout[l].tensors.size(); ++t) {
      const model::tensor_info& tensor = layout[l].tensors[t];
      const compute::random_key key{.seed = seed,
                                    .purpose = compute::random_purpose::sampling,
                                    .sequence = t,
                                    .layer = static_cast<std::uint32_t>(l)};
      const bool table = tensor.role == model::tensor_role::token_table ||
                         tensor.role == model::tensor_role::position_table;
      const float spread = !tensor.decays() ? 0.2f
                           : table          ? 0.4f
                                   : 1.2f / std::sqrt(static_cast<float>(tensor.shape.back()));
      const float center = is_gain(tensor.role) ? 1.0f : 0.0f;
      for (std::size_t i = 0; i < tensor.size; ++i) {
        values[tensor.offset + i] = center + spread * compute::normal(key, i);
      }
    }
    device.run([&](compute::ops& ops) {
      ops.copy(compute::host_view(std::span<const float>(values)),
               state.layers[l].parameters.all());
    });
  }
}

struct token_batch {
  std::vector<std::int32_t> tokens, targets;
};

// About one target in eight counts for nothing.
inline token_batch random_batch(std::uint64_t seed, std::uint64_t step, std::size_t count,
                                std::size_t vocabulary) {
  token_batch batch;
  const compute::random_key key{
      .seed = seed, .purpose = compute::random_purpose::data_order, .step = step};
  for (std::size_t i = 0; i < count; ++i) {
    const auto draw = [&](std::size_t which) {
      return compute::random_word(key, which * count + i);
    };
    batch.tokens.push_back(static_cast<std::int32_t>(draw(0) % vocabulary));
    batch.targets.push_back(draw(1) % 8 == 0 ? -1
                                             : static_cast<std::int32_t>(draw(2) % vocabulary));
  }
  return batch;
}

}  // namespace troupe::tests
