// SwiGLU. Backward computes the sigmoid again: cheaper than to keep a third matrix per layer.

#include "compute/cpu/kernels.hpp"
#include "compute/cpu/lanes.hpp"
#include "compute/cpu/tiling.hpp"

namespace troupe::compute::cpu {
namespace {

constexpr float_tag d;

}  // namespace

void swiglu(thread_pool& pool, const swiglu_args& a) {
  const float* gate_up = elements<float>(a.gate_up, a.rows * 2 * a.inner);
  float* out = elements<float>(a.out, a.rows * a.inner);
  for_rows(pool, a.rows, a.inner, [&](std::size_t row) {
    const float* gate = gate_up + row * 2 * a.inner;
    const float* up = gate + a.inner;
    float* to = out + row * a.inner;
    for_lanes(a.inner, [&](std::size_t c, auto which) {
      store(silu(d, load(gate + c, which)) * load(up + c, which), to + c, which);
    });
  });
}

void swiglu_backward(thread_pool& pool, const swiglu_backward_args& a) {
  const float* dout = elements<float>(a.dout, a.rows * a.inner);
  const float* gate_up = elements<float>(a.gate_up, a.rows * 2 * a.inner);
  float* dgate_up = elements<float>(a.dgate_up, a.rows * 2 * a.inner);
  for_rows(pool, a.rows, a.inner, [&](std::size_t row) {
    const float* gate = gate_up + row * 2 * a.inner;
    const float* up = gate + a.inner;
    const float* from = dout + row * a.inner;
    float* dgate = dgate_up + row * 2 * a.inner;
    float* dup = dgate + a.inner;
    for_lanes(a.inner, [&](std::size_t c, auto which) {
      const auto g = load(gate + c, which);
      const auto gradient = load(from + c, which);
      const auto u = load(up + c, which);
      const auto activated = formulas::silu_with_derivative<vector_arithmetic<float_tag>>(g);
      store(gradient * u * activated.derivative, dgate + c, which);
      store(gradient * activated.value, dup + c, which);
    });
  });
}

}  // namespace troupe::compute::cpu
