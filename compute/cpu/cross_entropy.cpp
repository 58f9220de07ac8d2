// Softmax cross-entropy of a row of logits, and its gradient in place: maximum, sum of exponentials
// (kept in the row if a gradient is wanted), then one pass that divides.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "compute/cpu/kernels.hpp"
#include "compute/cpu/lanes.hpp"
#include "compute/cpu/tiling.hpp"
#include "compute/scalar_math.hpp"

namespace troupe::compute::cpu {
namespace {

constexpr float_tag d;

float maximum(const float* x, std::size_t width) {
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto lanes = lowest;
  for_lanes(width, [&](std::size_t c, auto which) {
    lanes = hn::Max(inside(load(x + c, which), which, lowest), lanes);
  });
  return hn::GetLane(hn::MaxOfLanes(d, lanes));
}

// Sum of e^(x - shift), the terms stored to `to` unless it is null.
float sum_of_exponentials(const float* x, std::size_t width, float shift, float* to) {
  auto lanes = hn::Zero(d);
  for_lanes(width, [&](std::size_t c, auto which) {
    const auto e = exp(d, load(x + c, which) - hn::Set(d, shift));
    if (to) store(e, to + c, which);
    lanes = lanes + inside(e, which);
  });
  return fold(lanes);
}

void scale(float* x, std::size_t width, float factor) {
  for_lanes(width, [&](std::size_t c, auto which) {
    store(load(x + c, which) * hn::Set(d, factor), x + c, which);
  });
}

float cross_entropy_row(float* logits, std::size_t vocabulary, std::size_t target, bool gradient) {
  const float shift = maximum(logits, vocabulary);
  const float at_target = logits[target] - shift;
  const float sum = sum_of_exponentials(logits, vocabulary, shift, gradient ? logits : nullptr);
  if (gradient) {
    scale(logits, vocabulary, 1.0f / sum);
    logits[target] -= 1.0f;
  }
  return scalar::log(sum) - at_target;
}

}  // namespace

void cross_entropy(thread_pool& pool, const cross_entropy_args& a) {
  const std::int32_t* targets = elements<std::int32_t>(a.targets, a.rows);
  float* logits = elements<float>(a.logits, a.rows * a.vocabulary);
  float* losses = elements<float>(a.losses, a.rows);
  for_rows(pool, a.rows, a.vocabulary, [&](std::size_t row) {
    float* x = logits + row * a.vocabulary;
    const std::int32_t target = targets[row];
    if (target == -1) {
      losses[row] = 0.0f;
      if (a.gradient) std::fill_n(x, a.vocabulary, 0.0f);
      return;
    }
    ensure(target >= 0 && static_cast<std::size_t>(target) < a.vocabulary,
           "a target token lies outside of the vocabulary");
    losses[row] = cross_entropy_row(x, a.vocabulary, static_cast<std::size_t>(target), a.gradient);
  });
}

}  // namespace troupe::compute::cpu
