// One formula, two arithmetics: every value must come out with the same bits for one float and for
// 8 lanes.
#include "compute/scalar_math.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "compute/cpu/vector_math.hpp"

namespace troupe::compute {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr float infinity = std::numeric_limits<float>::infinity();

// About 4 million floats, evenly over all bit patterns (NaN and subnormals among them), and all
// floats around the places where a formula changes.
std::vector<float> interesting_floats() {
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < 1ull << 32; bits += 1031) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (const float edge :
       {0.0f, 0x1p-149f, 0x1p-126f, 0.625f, 0.34657359f, 1.0f, 87.0f, 88.376f, 88.7228f, 89.0f,
        103.97f, 104.0f, 0x1.fffffep127f, infinity, std::numeric_limits<float>::quiet_NaN()}) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(edge);
    for (std::uint32_t near = bits < 1000 ? 0 : bits - 1000; near < bits + 1000; ++near) {
      values.push_back(std::bit_cast<float>(near));
      values.push_back(-std::bit_cast<float>(near));
    }
  }
  while (values.size() % 8 != 0) values.push_back(1.0f);
  return values;
}

struct function {
  const char* name;
  float (*scalar)(float);
  void (*lanes)(const float* x, float* y);
  double (*truth)(double);
  float low, high;  // where the error counts
  double ulps;
};

template <class Formula>
void eight(const float* x, float* y) {
  const cpu::float_tag d;
  hn::StoreU(Formula()(d, hn::LoadU(d, x)), d, y);
}

#define TROUPE_FORMULA(name) \
#name, scalar::name, eight < decltype([](auto d, auto x) { return cpu::name(d, x); })>

double tanh_inside_gelu(double x) {
  return std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
}

double gelu_derivative(double x) {
  const double t = tanh_inside_gelu(x);
  const double slope = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const std::vector<function> functions = {
    {TROUPE_FORMULA(exp), [](double x) { return std::exp(x); }, -infinity, infinity, 1.0},
    {TROUPE_FORMULA(log), [](double x) { return std::log(x); }, 0, infinity, 1.0},
    {TROUPE_FORMULA(tanh), [](double x) { return std::tanh(x); }, -infinity, infinity, 2.0},
    {TROUPE_FORMULA(sigmoid), sigmoid, -87, infinity, 3.0},
    {TROUPE_FORMULA(silu), [](double x) { return x * sigmoid(x); }, -80, 3e38f, 3.0},
    {TROUPE_FORMULA(silu_derivative),
     [](double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }, -1, 80, 4.0},
    {TROUPE_FORMULA(gelu), [](double x) { return 0.5 * x * (1 + tanh_inside_gelu(x)); }, -1, 3e38f,
     5.0},
    {TROUPE_FORMULA(gelu_derivative), gelu_derivative, -0.5f, 100, 5.0},
};

double ulps(float value, double truth) {
  const float rounded = std::fabs(static_cast<float>(truth));
  if (std::isinf(rounded)) return value == static_cast<float>(truth) ? 0 : infinity;
  const double ulp = static_cast<double>(std::nextafter(rounded, infinity)) - rounded;
  return std::fabs(value - truth) / ulp;
}

TEST(scalar_math, has_the_bits_of_the_vector_functions_for_millions_of_values) {
  const std::vector<float> values = interesting_floats();
  for (const function& f : functions) {
    std::size_t different = 0;
    float y[8];
    for (std::size_t i = 0; i < values.size(); i += 8) {
      f.lanes(&values[i], y);
      for (std::size_t k = 0; k < 8; ++k) {
        const float alone = f.scalar(values[i + k]);
        const bool same = std::bit_cast<std::uint32_t>(alone) == std::bit_cast<std::uint32_t>(y[k]);
        if (!same && !(std::isnan(alone) && std::isnan(y[k])) && different++ < 3) {
          ADD_FAILURE() << f.name << "(" << std::hexfloat << values[i + k] << "): " << alone
                        << " and " << y[k];
        }
      }
    }
    EXPECT_EQ(different, 0u) << f.name;
  }
}

TEST(scalar_math, stays_within_its_documented_distance_from_the_exact_value) {
  const std::vector<float> values = interesting_floats();
  for (const function& f : functions) {
    double worst = 0;
    float at = 0;
    for (const float x : values) {
      if (!(x >= f.low && x <= f.high)) continue;
      const double error = ulps(f.scalar(x), f.truth(x));
      if (!(error <= worst)) worst = error, at = x;
    }
    EXPECT_LE(worst, f.ulps) << f.name << " at " << at;
  }
}

TEST(scalar_math, is_exact_at_the_special_places) {
  EXPECT_EQ(scalar::exp(0.0f), 1.0f);
  EXPECT_EQ(scalar::exp(-0.0f), 1.0f);
  EXPECT_EQ(scalar::exp(infinity), infinity);
  EXPECT_EQ(scalar::exp(-infinity), 0.0f);
  EXPECT_EQ(scalar::exp(88.73f), infinity);
  EXPECT_EQ(scalar::exp(-103.0f), 0x1p-149f);
  EXPECT_EQ(scalar::log(1.0f), 0.0f);
  EXPECT_EQ(scalar::log(0.0f), -infinity);
  EXPECT_EQ(scalar::log(infinity), infinity);
  EXPECT_TRUE(std::isnan(scalar::log(-1.0f)));
  EXPECT_EQ(scalar::tanh(infinity), 1.0f);
  EXPECT_EQ(scalar::tanh(-30.0f), -1.0f);
  EXPECT_TRUE(std::signbit(scalar::tanh(-0.0f)));
  EXPECT_EQ(scalar::sigmoid(0.0f), 0.5f);
  EXPECT_EQ(scalar::sigmoid(-infinity), 0.0f);
  EXPECT_EQ(scalar::gelu(0.0f), 0.0f);
  EXPECT_EQ(scalar::gelu_derivative(1e30f), 1.0f);
  EXPECT_NEAR(scalar::gelu_derivative(-1e30f), 0.0f, 1e-34f);
  EXPECT_NEAR(scalar::silu_derivative(-1e30f), 0.0f, 1e-34f);
  EXPECT_EQ(scalar::silu_derivative(1e30f), 1.0f);
}

TEST(scalar_math, passes_nan_on) {
  for (const function& f : functions) {
    EXPECT_TRUE(std::isnan(f.scalar(std::numeric_limits<float>::quiet_NaN()))) << f.name;
  }
}

// The negative tail of GELU is small and relative digits are lost with the argument; what counts is
// the error against 1.
TEST(scalar_math, gelu_and_its_derivative_are_accurate_in_absolute_terms_everywhere) {
  for (float x = -40; x < 40; x += 0.00037f) {
    const double exact = 0.5 * x * (1 + tanh_inside_gelu(x));
    ASSERT_NEAR(scalar::gelu(x), exact, 2e-7 * std::max(1.0, std::fabs(exact))) << x;
    ASSERT_NEAR(scalar::gelu_derivative(x), gelu_derivative(x), 3e-7) << x;
    ASSERT_NEAR(scalar::silu_derivative(x), sigmoid(x) * (1 + x * (1 - sigmoid(x))), 3e-7) << x;
  }
}

}  // namespace
}  // namespace troupe::compute
