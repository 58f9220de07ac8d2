#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compute/cpu/kernels.hpp"
#include "compute/scalar_math.hpp"
#include "tests/compute/cpu/test_data.hpp"

namespace troupe::compute::cpu {
namespace {

using namespace testing;

using targets = std::vector<std::int32_t>;

targets some_targets(std::size_t rows, std::size_t vocabulary) {
  targets t(rows);
  for (std::size_t r = 0; r < rows; ++r) t[r] = static_cast<std::int32_t>(r * 37 % vocabulary);
  return t;
}

TEST(cross_entropy, equals_the_documented_order_for_any_size_and_thread_count) {
  constexpr std::size_t rows = 10;
  for (const std::size_t vocabulary : odd_sizes) {
    const floats logits = random_floats(rows * vocabulary, 1, 4);
    targets t = some_targets(rows, vocabulary);
    t[3] = -1;
    floats expected = logits, expected_losses(rows, 0.0f);
    for (std::size_t r = 0; r < rows; ++r) {
      float* row = &expected[r * vocabulary];
      if (t[r] < 0) {
        std::fill_n(row, vocabulary, 0.0f);
        continue;
      }
      const float shift = *std::max_element(row, row + vocabulary);
      const float at_target = row[t[r]] - shift;
      for (std::size_t i = 0; i < vocabulary; ++i) row[i] = scalar::exp(row[i] - shift);
      const float sum = lane_sum(vocabulary, [&](float s, std::size_t i) { return s + row[i]; });
      const float inverse = 1.0f / sum;
      for (std::size_t i = 0; i < vocabulary; ++i) row[i] *= inverse;
      row[t[r]] -= 1.0f;
      expected_losses[r] = scalar::log(sum) - at_target;
    }
    for (int threads = 1; threads <= 3; ++threads) {
      SCOPED_TRACE(::testing::Message() << "vocabulary " << vocabulary << ", threads " << threads);
      thread_pool pool(threads);
      floats values = logits, losses(rows, 99.0f);
      cross_entropy(pool, {rows, vocabulary, view_of(t), view_of(values), view_of(losses), false});
      expect_same_bits(losses, expected_losses, "losses without gradient");
      expect_same_bits(values, logits, "logits without gradient");
      losses.assign(rows, 99.0f);
      cross_entropy(pool, {rows, vocabulary, view_of(t), view_of(values), view_of(losses), true});
      expect_same_bits(losses, expected_losses, "losses");
      expect_same_bits(values, expected, "gradient");
    }
  }
}

TEST(cross_entropy, agrees_with_double_precision_and_numerical_derivatives) {
  constexpr std::size_t rows = 3, vocabulary = 13;
  const floats logits = random_floats(rows * vocabulary, 2, 3);
  const targets t = {5, -1, 12};
  const auto exact = [&](const doubles& x) {
    doubles losses(rows);
    for (std::size_t r = 0; r < rows; ++r) {
      if (t[r] < 0) continue;
      double sum = 0;
      for (std::size_t i = 0; i < vocabulary; ++i) sum += std::exp(x[r * vocabulary + i]);
      losses[r] = std::log(sum) - x[r * vocabulary + t[r]];
    }
    return losses;
  };
  thread_pool pool(1);
  floats values = logits, losses(rows);
  cross_entropy(pool, {rows, vocabulary, view_of(t), view_of(values), view_of(losses)});
  expect_near(losses, exact(widened(logits)), 1e-6, "losses");
  const auto loss = [&](const doubles& x) { return dot(exact(x), floats(rows, 1.0f)); };
  expect_near(values, numerical_gradient(loss, widened(logits)), 1e-6, "gradient");
}

TEST(cross_entropy, is_neither_infinite_for_huge_logits_nor_quiet_about_nan) {
  thread_pool pool(1);
  floats logits = {3e38f, -3e38f, 0, 1000, 1000, -1000, 0, std::nanf(""), 0};
  floats losses(3);
  const targets t = {0, 0, 0};
  cross_entropy(pool, {3, 3, view_of(t), view_of(logits), view_of(losses)});
  EXPECT_EQ(losses[0], 0.0f);
  EXPECT_NEAR(losses[1], 0.69314718f, 1e-7);
  EXPECT_TRUE(std::isnan(losses[2]));
  EXPECT_EQ(logits[0], 0.0f);
  EXPECT_EQ(logits[3], -0.5f);
  EXPECT_EQ(logits[4], 0.5f);
}

}  // namespace
}  // namespace troupe::compute::cpu
