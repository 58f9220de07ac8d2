#include "model/model_state.hpp"

#include <algorithm>
#include <cmath>
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

void initial_values(const description& d, const model_layout& layout, std::uint64_t seed,
                    std::size_t layer, std::size_t first, std::span<float> into) {
  std::ranges::fill(into, 0.0f);
  const std::size_t last = first + into.size();
  const std::vector<tensor_info>& tensors = layout[layer].tensors;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const tensor_info& tensor = tensors[t];
    const std::size_t begin = std::max(first, tensor.offset);
    const std::size_t end = std::min(last, tensor.offset + tensor.size);
    if (begin >= end) continue;
    const std::span<float> part = into.subspan(begin - first, end - begin);
    double spread = d.initializer_range;
    if (d.family == family::gpt2 && ends_a_branch(tensor.role)) {
      spread /= std::sqrt(2.0 * static_cast<double>(d.layers));
    }
    const float factor = static_cast<float>(spread);
    const compute::random_key key{.seed = seed,
                                  .purpose = compute::random_purpose::initialization,
                                  .sequence = t,
                                  .layer = static_cast<std::uint32_t>(layer)};
    if (is_gain(tensor.role)) {
      std::ranges::fill(part, 1.0f);
    } else if (tensor.decays()) {
      compute::fill_normal(key, begin - tensor.offset, part);
      for (float& value : part) value *= factor;
    }
  }
}

void initialize(compute::executor& device, const description& d, const model_layout& layout,
                std::uint64_t seed, model_state& state) {
  for (std::size_t l = 0; l < layout.size(); ++l) {
    std::vector<float> values(layout[l].elements);
    initial_values(d, layout, seed, l, 0, values);
    device.run([&](compute::ops& ops) {
      ops.copy(compute::host_view(std::span<const float>(values)),
               state.layers[l].parameters.all());
    });
  }
}

}  // namespace troupe::model
