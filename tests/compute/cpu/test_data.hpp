// What the tests of the CPU operations share: random inputs, comparison by bits, the documented
// order of a row reduction as a scalar loop, and numerical derivatives.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "compute/buffer.hpp"

namespace troupe::compute::cpu::testing {

using floats = std::vector<float>;
using doubles = std::vector<double>;

inline const std::vector<std::size_t> odd_sizes = {1, 7, 8, 13, 65, 257};

inline floats random_floats(std::size_t size, unsigned seed, float spread = 1, float center = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(center, spread);
  floats values(size);
  for (float& value : values) value = draw(random);
  return values;
}

inline doubles widened(const floats& values) { return {values.begin(), values.end()}; }

template <class T>
view view_of(std::vector<T>& values) {
  return host_view(std::span<T>(values));
}
template <class T>
const_view view_of(const std::vector<T>& values) {
  return host_view(std::span<const T>(values));
}

template <class T>
void expect_same_bits(const std::vector<T>& actual, const std::vector<T>& expected,
                      const char* what) {
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(std::bit_cast<bits>(actual[i]), std::bit_cast<bits>(expected[i]))
        << what << "[" << i << "]: " << actual[i] << " and " << expected[i];
  }
}

inline void expect_near(const floats& actual, const doubles& expected, double tolerance,
                        const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * std::max(1.0, std::fabs(expected[i])))
        << what << "[" << i << "]";
  }
}

// The fixed fold of 8 lanes.
template <class T>
T folded(const T (&lane)[8]) {
  T four[4], two[2];
  for (int i = 0; i < 4; ++i) four[i] = lane[i] + lane[i + 4];
  for (int i = 0; i < 2; ++i) two[i] = four[i] + four[i + 2];
  return two[0] + two[1];
}

// A row reduction: lane i mod 8 becomes next(lane, i), then the fold.
template <class T = float, class Next>
T lane_sum(std::size_t size, const Next& next) {
  T lane[8] = {};
  for (std::size_t i = 0; i < size; ++i) lane[i % 8] = next(lane[i % 8], i);
  return folded(lane);
}

// d loss / d x[i] for all i by a five-point stencil; loss takes the whole vector. Error about
// 1e-10.
template <class Loss>
doubles numerical_gradient(const Loss& loss, doubles x) {
  constexpr double h = 1e-3;
  doubles gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double center = x[i];
    const auto at = [&](double offset) {
      x[i] = center + offset;
      return loss(x);
    };
    gradient[i] = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    x[i] = center;
  }
  return gradient;
}

inline double dot(const doubles& a, const floats& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace troupe::compute::cpu::testing
