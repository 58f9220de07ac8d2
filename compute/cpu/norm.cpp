// Layer norm and RMS norm. Statistics of a row: 8 lanes, fold, one division; the variance takes a
// second pass over the differences from the mean, which costs little in L1 and loses nothing for
// large means. Gradients of gain and bias: one chain over the rows for each column.

#include <algorithm>
#include <cmath>

#include "compute/cpu/kernels.hpp"
#include "compute/cpu/lanes.hpp"
#include "compute/cpu/tiling.hpp"

namespace troupe::compute::cpu {
namespace {

constexpr float_tag d;

float sum(const float* x, std::size_t width) {
  auto lanes = hn::Zero(d);
  for_lanes(width, [&](std::size_t c, auto which) { lanes = lanes + load(x + c, which); });
  return fold(lanes);
}

// Sum of (x - center)^2.
float sum_of_squares(const float* x, std::size_t width, float center) {
  auto lanes = hn::Zero(d);
  for_lanes(width, [&](std::size_t c, auto which) {
    const auto difference = inside(load(x + c, which) - hn::Set(d, center), which);
    lanes = hn::MulAdd(difference, difference, lanes);
  });
  return fold(lanes);
}

void norm_row(const float* x, const float* gain, const float* bias, float mean, float rstd,
              float* y, std::size_t width) {
  const auto means = hn::Set(d, mean), rstds = hn::Set(d, rstd);
  for_lanes(width, [&](std::size_t c, auto which) {
    const auto normal = (load(x + c, which) - means) * rstds;
    const auto gains = load(gain + c, which);
    store(bias ? hn::MulAdd(normal, gains, load(bias + c, which)) : normal * gains, y + c, which);
  });
}

// Without a mean, x - 0 is x: one code for both kinds.
float mean_of(const float* means, std::size_t row) { return means ? means[row] : 0.0f; }

}  // namespace

void norm(thread_pool& pool, const norm_args& a) {
  const std::size_t size = a.rows * a.width;
  const bool layer = a.kind == norm_kind::layer;
  const float* x = elements<float>(a.x, size);
  const float* gain = elements<float>(a.gain, a.width);
  const float* bias = optional_elements<float>(a.bias, a.width);
  float* y = elements<float>(a.y, size);
  float* means = layer ? elements<float>(a.mean, a.rows) : nullptr;
  float* rstds = elements<float>(a.rstd, a.rows);
  const float width = static_cast<float>(a.width);
  for_rows(pool, a.rows, a.width, [&](std::size_t row) {
    const float* from = x + row * a.width;
    const float mean = layer ? sum(from, a.width) / width : 0.0f;
    const float variance = sum_of_squares(from, a.width, mean) / width;
    const float rstd = 1.0f / std::sqrt(variance + a.epsilon);
    norm_row(from, gain, bias, mean, rstd, y + row * a.width, a.width);
    if (layer) means[row] = mean;
    rstds[row] = rstd;
  });
}

void norm_backward_input(thread_pool& pool, const norm_backward_input_args& a) {
  const std::size_t size = a.rows * a.width;
  const bool layer = a.kind == norm_kind::layer;
  const float* dy = elements<float>(a.dy, size);
  const float* x = elements<float>(a.x, size);
  const float* gain = elements<float>(a.gain, a.width);
  const float* means = layer ? elements<float>(a.mean, a.rows) : nullptr;
  const float* rstds = elements<float>(a.rstd, a.rows);
  const float* residual = optional_elements<float>(a.residual, size);
  float* dx = elements<float>(a.dx, size);
  const float width = static_cast<float>(a.width);
  for_rows(pool, a.rows, a.width, [&](std::size_t row) {
    const std::size_t start = row * a.width;
    const auto mean = hn::Set(d, mean_of(means, row)), rstd = hn::Set(d, rstds[row]);
    // g = dy gain is the gradient of the normalised row n; dx = rstd (g - mean(g) - n mean(g n)).
    auto g_lanes = hn::Zero(d), gn_lanes = hn::Zero(d);
    for_lanes(a.width, [&](std::size_t c, auto which) {
      const auto n = (load(x + start + c, which) - mean) * rstd;
      const auto g = load(dy + start + c, which) * load(gain + c, which);
      g_lanes = g_lanes + g;
      gn_lanes = hn::MulAdd(g, inside(n, which), gn_lanes);
    });
    const auto g_mean = hn::Set(d, layer ? fold(g_lanes) / width : 0.0f);
    const auto gn_mean = hn::Set(d, fold(gn_lanes) / width);
    for_lanes(a.width, [&](std::size_t c, auto which) {
      const auto n = (load(x + start + c, which) - mean) * rstd;
      const auto g = load(dy + start + c, which) * load(gain + c, which);
      const auto inner = hn::NegMulAdd(n, gn_mean, g - g_mean);
      store(residual ? hn::MulAdd(rstd, inner, load(residual + start + c, which)) : rstd * inner,
            dx + start + c, which);
    });
  });
}

void norm_backward_weight(thread_pool& pool, const norm_backward_weight_args& a) {
  const std::size_t size = a.rows * a.width;
  const bool layer = a.kind == norm_kind::layer;
  const float* dy = elements<float>(a.dy, size);
  const float* x = elements<float>(a.x, size);
  const float* means = layer ? elements<float>(a.mean, a.rows) : nullptr;
  const float* rstds = elements<float>(a.rstd, a.rows);
  float* dgain = elements<float>(a.dgain, a.width);
  float* dbias = optional_elements<float>(a.dbias, a.width);
  // A few rows at a time for each run of columns: the chains stay in registers for that long, and
  // the rows are still read as streams.
  constexpr std::size_t block = 8;
  for_columns(pool, a.width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t first = 0; first < a.rows || first == 0; first += block) {
      const std::size_t last = std::min(a.rows, first + block);
      const bool fresh = a.fresh && first == 0;
      for_lanes(begin, end, [&](std::size_t c, auto which) {
        auto gains = fresh ? hn::Zero(d) : load(dgain + c, which);
        auto biases = fresh || !dbias ? hn::Zero(d) : load(dbias + c, which);
        for (std::size_t row = first; row < last; ++row) {
          const auto g = load(dy + row * a.width + c, which);
          const auto n = (load(x + row * a.width + c, which) - hn::Set(d, mean_of(means, row))) *
                         hn::Set(d, rstds[row]);
          gains = hn::MulAdd(g, n, gains);
          biases = biases + g;
        }
        store(gains, dgain + c, which);
        if (dbias) store(biases, dbias + c, which);
      });
    }
  });
}

}  // namespace troupe::compute::cpu
