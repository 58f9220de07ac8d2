#include <gtest/gtest.h>

#include <cmath>

#include "compute/cpu/kernels.hpp"
#include "compute/math.hpp"
#include "tests/compute/cpu/test_data.hpp"

namespace troupe::compute::cpu {
namespace {

using namespace testing;

struct adamw_data {
  floats gradient, parameters, first, second;

  explicit adamw_data(std::size_t size)
      : gradient(random_floats(size, 1)),
        parameters(random_floats(size, 2)),
        first(size),
        second(size) {}
  adamw_args args(int updates) {
    return {gradient.size(),
            view_of(gradient),
            view_of(parameters),
            view_of(first),
            view_of(second),
            0.125f,
            3e-3f,
            0.9f,
            0.95f,
            1e-8f,
            0.1f,
            static_cast<float>(1 - math::pow(0.9, updates)),
            static_cast<float>(1 - math::pow(0.95, updates))};
  }
};

TEST(adamw, equals_the_documented_order_for_any_size_and_thread_count) {
  for (const std::size_t size : {1, 7, 8, 13, 257, 40001}) {
    adamw_data expected(size);
    for (int updates = 1; updates <= 3; ++updates) {
      const adamw_args a = expected.args(updates);
      const float r1 = 1.0f / a.correction1, r2 = 1.0f / a.correction2;
      for (std::size_t i = 0; i < size; ++i) {
        const float g = expected.gradient[i] * a.scale;
        float &m = expected.first[i], &v = expected.second[i], &p = expected.parameters[i];
        m = std::fma(a.beta1, m, (1.0f - a.beta1) * g);
        v = std::fma(a.beta2, v, (1.0f - a.beta2) * (g * g));
        const float u = (m * r1) / (std::sqrt(v * r2) + a.epsilon);
        p = std::fma(-a.lr, std::fma(a.weight_decay, p, u), p);
      }
    }
    for (int threads = 1; threads <= 3; ++threads) {
      SCOPED_TRACE(::testing::Message() << "size " << size << ", threads " << threads);
      thread_pool pool(threads);
      adamw_data data(size);
      for (int updates = 1; updates <= 3; ++updates) adamw(pool, data.args(updates));
      expect_same_bits(data.first, expected.first, "first moment");
      expect_same_bits(data.second, expected.second, "second moment");
      expect_same_bits(data.parameters, expected.parameters, "parameters");
    }
  }
}

TEST(adamw, in_pieces_equals_the_whole) {
  thread_pool pool(2);
  adamw_data whole(1000), pieces(1000);
  adamw(pool, whole.args(1));
  for (const auto& [first, count] : {std::pair{0, 3}, {3, 500}, {503, 497}}) {
    adamw_args a = pieces.args(1);
    a.size = count;
    a.gradient = a.gradient.part(first, count);
    a.parameters = a.parameters.part(first, count);
    a.first_moment = a.first_moment.part(first, count);
    a.second_moment = a.second_moment.part(first, count);
    adamw(pool, a);
  }
  expect_same_bits(pieces.parameters, whole.parameters, "parameters");
}

TEST(adamw, agrees_with_double_precision_over_many_updates) {
  thread_pool pool(1);
  constexpr std::size_t size = 100;
  adamw_data data(size);
  doubles p = widened(data.parameters), m(size), v(size);
  for (int updates = 1; updates <= 50; ++updates) {
    data.gradient = random_floats(size, 100 + updates);
    adamw(pool, data.args(updates));
    for (std::size_t i = 0; i < size; ++i) {
      const double g = data.gradient[i] * 0.125;
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.95 * v[i] + 0.05 * g * g;
      const double step = m[i] / (1 - std::pow(0.9, updates)) /
                          (std::sqrt(v[i] / (1 - std::pow(0.95, updates))) + 1e-8);
      p[i] -= 3e-3 * (step + 0.1 * p[i]);
    }
  }
  expect_near(data.parameters, p, 2e-6, "parameters");
}

}  // namespace
}  // namespace troupe::compute::cpu
