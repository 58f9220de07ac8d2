#include "model/pass_memory.hpp"

namespace troupe::model {

void pass_memory::reserve(const network& net, std::size_t rows) {
  if (rows <= rows_) return;
  compute::executor& device = net.device();
  const description& d = net.described();
  const auto floats = [&](std::size_t count) {
    return device.allocate(count, compute::dtype::float32);
  };
  kept.clear();
  at.clear();
  for (std::size_t i = 0; i < d.layers; ++i) kept.emplace_back(device, d, rows);
  at.emplace_back(device, d, rows);
  head_input = floats(rows * d.width);
  normed = floats(rows * d.width);
  normed_gradient = floats(rows * d.width);
  if (d.family == family::gpt2) mean = floats(rows);
  rstd = floats(rows);
  logits = floats(net.head_chunk(rows) * d.vocabulary);
  losses = floats(rows);
  if (d.dropout > 0) branch = floats(rows * d.width);
  gradient_a = floats(rows * d.width);
  gradient_b = floats(rows * d.width);
  rows_ = rows;

  std::size_t bytes = at.front().bytes();
  for (const layer_activations& layer : kept) bytes += layer.bytes();
  for (const compute::buffer* b : {&head_input, &normed, &normed_gradient, &mean, &rstd, &logits,
                                   &losses, &branch, &gradient_a, &gradient_b}) {
    bytes += b->bytes();
  }
  bytes_.store(bytes, std::memory_order_relaxed);
}

}  // namespace troupe::model
