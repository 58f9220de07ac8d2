#include "model/model_state.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "compute/random_normal.hpp"

namespace troupe::model {
namespace {

bool is_gain(tensor_role role) {
  return role == tensor_role::attention_norm || role == tensor_role::mlp_norm ||
         role == tensor_role::final_norm;
}

bool ends_a_branch(tensor_role role) {
  return role == tensor_role::attention_out || role == tensor_role::mlp_down;
}

}  // namespace

model_state allocate_state(compute::executor& device, const model_layout& layout,
                           bool with_moments) {
  model_state state;
  for (const layer_layout& layer : layout) {
    layer_state s;
    s.parameters = device.allocate(layer.elements, compute::dtype::float32);
    if (with_moments) {
      s.first_moment = device.allocate(layer.elements, compute::dtype::float32);
      s.second_moment = device.allocate(layer.elements, compute::dtype::float32);
    }
    state.layers.push_back(std::move(s));
  }
  return state;
}

void initialize(compute::executor& device, const description& d, const model_layout& layout,
                std::uint64_t seed, model_state& state) {
  for (std::size_t l = 0; l < layout.size(); ++l) {
    std::vector<float> values(layout[l].elements, 0.0f);
    for (std::size_t t = 0; t < layout[l].tensors.size(); ++t) {
      const tensor_info& tensor = layout[l].tensors[t];
      double spread = d.initializer_range;
      if (d.family == family::gpt2 && ends_a_branch(tensor.role)) {
        spread /= std::sqrt(2.0 * static_cast<double>(d.layers));
      }
      const float factor = static_cast<float>(spread);
      const compute::random_key key{.seed = seed,
                                    .purpose = compute::random_purpose::initialization,
                                    .sequence = t,
                                    .layer = static_cast<std::uint32_t>(l)};
      const std::span<float> into = std::span(values).subspan(tensor.offset, tensor.size);
      if (is_gain(tensor.role)) {
        std::ranges::fill(into, 1.0f);
      } else if (tensor.decays()) {
        compute::fill_normal(key, 0, into);
        for (float& value : into) value *= factor;
      }
    }
    device.run([&](compute::ops& ops) {
      ops.copy(compute::host_view(std::span<const float>(values)),
               state.layers[l].parameters.all());
    });
  }
}

}  // namespace troupe::model
