#include <gtest/gtest.h>

#include <cmath>

#include "compute/cpu/kernels.hpp"
#include "compute/scalar_math.hpp"
#include "tests/compute/cpu/test_data.hpp"

namespace troupe::compute::cpu {
namespace {

using namespace testing;

doubles exact_swiglu(const doubles& gate_up, std::size_t rows, std::size_t inner) {
  doubles out(rows * inner);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double gate = gate_up[i / inner * 2 * inner + i % inner];
    out[i] = gate / (1 + std::exp(-gate)) * gate_up[i / inner * 2 * inner + inner + i % inner];
  }
  return out;
}

TEST(swiglu, equals_the_scalar_formula_for_any_size_and_thread_count) {
  constexpr std::size_t rows = 9;
  for (const std::size_t inner : odd_sizes) {
    for (int threads = 1; threads <= 3; ++threads) {
      SCOPED_TRACE(::testing::Message() << "inner " << inner << ", threads " << threads);
      thread_pool pool(threads);
      const floats gate_up = random_floats(rows * 2 * inner, 1, 3),
                   dout = random_floats(rows * inner, 2);
      floats out(rows * inner), dgate_up(rows * 2 * inner), expected(rows * inner),
          expected_gradient(rows * 2 * inner);
      swiglu(pool, {rows, inner, view_of(gate_up), view_of(out)});
      swiglu_backward(pool, {rows, inner, view_of(dout), view_of(gate_up), view_of(dgate_up)});
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t at = i / inner * 2 * inner + i % inner;
        const float gate = gate_up[at], up = gate_up[at + inner];
        const float s = 1.0f / (1.0f + scalar::exp(-gate));
        expected[i] = scalar::silu(gate) * up;
        expected_gradient[at] = dout[i] * up * scalar::silu_derivative(gate);
        expected_gradient[at + inner] = dout[i] * (gate * s);
      }
      expect_same_bits(out, expected, "out");
      expect_same_bits(dgate_up, expected_gradient, "dgate_up");
    }
  }
}

TEST(swiglu, agrees_with_double_precision_and_numerical_derivatives) {
  constexpr std::size_t rows = 3, inner = 13;
  thread_pool pool(1);
  const floats gate_up = random_floats(rows * 2 * inner, 3, 2),
               dout = random_floats(rows * inner, 4);
  floats out(rows * inner), dgate_up(rows * 2 * inner);
  swiglu(pool, {rows, inner, view_of(gate_up), view_of(out)});
  swiglu_backward(pool, {rows, inner, view_of(dout), view_of(gate_up), view_of(dgate_up)});
  expect_near(out, exact_swiglu(widened(gate_up), rows, inner), 1e-6, "out");
  const auto loss = [&](const doubles& v) { return dot(exact_swiglu(v, rows, inner), dout); };
  expect_near(dgate_up, numerical_gradient(loss, widened(gate_up)), 1e-6, "dgate_up");
}

}  // namespace
}  // namespace troupe::compute::cpu
