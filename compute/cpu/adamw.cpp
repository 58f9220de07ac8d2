// AdamW, one pass over gradient, parameter and both moments: bound by memory. In this order of
// roundings, with r1 = 1 / c1 and r2 = 1 / c2 taken once (so only one division an element remains):
//   g = gradient scale
//   m = fma(b1, m, (1 - b1) g)
//   v = fma(b2, v, (1 - b2) (g g))
//   u = (m r1) / (sqrt(v r2) + eps)
//   p = p - lr fma(decay, p, u), the outer product and difference fused

#include "compute/cpu/kernels.hpp"
#include "compute/cpu/lanes.hpp"
#include "compute/cpu/tiling.hpp"

namespace troupe::compute::cpu {

void adamw(thread_pool& pool, const adamw_args& a) {
  const float* gradient = elements<float>(a.gradient, a.size);
  float* parameters = elements<float>(a.parameters, a.size);
  float* first = elements<float>(a.first_moment, a.size);
  float* second = elements<float>(a.second_moment, a.size);
  const float_tag d;
  const auto scale = hn::Set(d, a.scale), rate = hn::Set(d, a.lr),
             decay = hn::Set(d, a.weight_decay);
  const auto beta1 = hn::Set(d, a.beta1), rest1 = hn::Set(d, 1.0f - a.beta1);
  const auto beta2 = hn::Set(d, a.beta2), rest2 = hn::Set(d, 1.0f - a.beta2);
  const auto r1 = hn::Set(d, 1.0f / a.correction1), r2 = hn::Set(d, 1.0f / a.correction2);
  const auto epsilon = hn::Set(d, a.epsilon);
  for_runs(pool, a.size, elements_per_tile, [&](std::size_t begin, std::size_t end) {
    for_lanes(begin, end, [&](std::size_t i, auto which) {
      const auto g = load(gradient + i, which) * scale;
      const auto m = hn::MulAdd(beta1, load(first + i, which), rest1 * g);
      const auto v = hn::MulAdd(beta2, load(second + i, which), rest2 * (g * g));
      const auto p = load(parameters + i, which);
      const auto u = (m * r1) / (hn::Sqrt(v * r2) + epsilon);
      store(m, first + i, which);
      store(v, second + i, which);
      store(hn::NegMulAdd(rate, hn::MulAdd(decay, p, u), p), parameters + i, which);
    });
  });
}

}  // namespace troupe::compute::cpu
