#include "compute/math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace troupe::compute {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Distance of `value` from the exact `truth` (libm with 64 bits of mantissa) in ulps of the truth.
double ulps(double value, long double truth) {
  const double rounded = std::fabs(static_cast<double>(truth));
  const double ulp = std::nextafter(rounded, infinity) - rounded;
  return static_cast<double>(std::fabs(value - truth) / ulp);
}

template <class Ours, class Truth>
void expect_close(const Ours& ours, const Truth& truth, double low, double high, double limit) {
  constexpr unsigned seed = 7;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> draw(low, high);
  double worst = 0, at = 0;
  for (int i = 0; i < 300000; ++i) {
    const double x = draw(random);
    const double error = ulps(ours(x), truth(static_cast<long double>(x)));
    if (!(error <= worst)) worst = error, at = x;
  }
  EXPECT_LE(worst, limit) << "at " << at << ", seed " << seed;
}

TEST(math, exp_is_within_one_ulp) {
  const auto truth = [](long double x) { return std::exp(x); };
  expect_close(math::exp, truth, -1, 1, 1.0);
  expect_close(math::exp, truth, -708, 709, 1.0);
  EXPECT_EQ(math::exp(0), 1.0);
  EXPECT_EQ(math::exp(710), infinity);
  EXPECT_EQ(math::exp(-infinity), 0.0);
  EXPECT_EQ(math::exp(-745), 0x1p-1074);
  EXPECT_TRUE(std::isnan(math::exp(std::nan(""))));
}

TEST(math, log_is_within_one_ulp) {
  const auto truth = [](long double x) { return std::log(x); };
  expect_close(math::log, truth, 0.5, 2, 0.6);
  expect_close(math::log, truth, 0, 1e-3, 0.6);
  expect_close(math::log, truth, 1, 1e9, 0.6);
  EXPECT_LE(ulps(math::log(0x1.8p-1070), std::log(0x1.8p-1070L)), 0.6);
  EXPECT_EQ(math::log(1), 0.0);
  EXPECT_EQ(math::log(0), -infinity);
  EXPECT_EQ(math::log(infinity), infinity);
  EXPECT_TRUE(std::isnan(math::log(-1)));
}

TEST(math, pow_is_within_two_ulps_for_rotary_bases_and_bias_corrections) {
  for (const double base : {0.9, 0.95, 0.999, 1e4, 5e5, 3.7e-5}) {
    SCOPED_TRACE(base);
    const auto truth = [base](long double y) {
      return std::pow(static_cast<long double>(base), y);
    };
    const auto ours = [base](double y) { return math::pow(base, y); };
    expect_close(ours, truth, -1, 1, 1.5);
    expect_close(ours, truth, -40, 40, 1.5);
  }
  EXPECT_EQ(math::pow(0.5, 3), 0.125);
  EXPECT_EQ(math::pow(0, 0), 1.0);
  EXPECT_EQ(math::pow(0, 2), 0.0);
  EXPECT_EQ(math::pow(0.9, 1e6), 0.0);
  EXPECT_EQ(math::pow(10, 400), infinity);
}

TEST(math, sine_and_cosine_are_within_one_ulp_up_to_a_million_radians) {
  for (const double limit : {0.7, 7.0, 1e4, 1e6, 2e9}) {
    SCOPED_TRACE(limit);
    // The 64-bit truth is itself exact only to 2^-64 of 1 near a zero; where the value is tiny,
    // ulps of 1e-5 still leave it 5 digits to spare.
    const auto far_from_zero = [](long double value) { return std::fabs(value) > 1e-5L; };
    const auto sine = [&](long double x) {
      return far_from_zero(std::sin(x)) ? std::sin(x) : 0.0L;
    };
    const auto ours = [&](double x) { return sine(x) == 0.0L ? 0.0 : math::sin(x); };
    expect_close(ours, sine, -limit, limit, 1.0);
    const auto cosine = [&](long double x) {
      return far_from_zero(std::cos(x)) ? std::cos(x) : 0.0L;
    };
    const auto our_cosine = [&](double x) { return cosine(x) == 0.0L ? 0.0 : math::cos(x); };
    expect_close(our_cosine, cosine, -limit, limit, 1.0);
  }
  EXPECT_EQ(math::sin(0), 0.0);
  EXPECT_EQ(math::cos(0), 1.0);
  EXPECT_TRUE(std::isnan(math::cos(infinity)));
}

// pi rounded to double: its sine is exactly the part of pi that the rounding took away.
TEST(math, reduction_keeps_all_digits_where_almost_everything_cancels) {
  const double near_pi = 0x1.921fb54442d18p+1;
  EXPECT_LE(ulps(math::sin(near_pi), 0x1.1a62633145c06e0ep-53L), 1.0);
  EXPECT_LE(ulps(math::cos(near_pi / 2), 0x1.1a62633145c06e0ep-54L), 1.0);
}

TEST(math, cos_pi_is_exact_on_quarters_and_within_one_ulp_between) {
  constexpr long double pi = 3.14159265358979323846264338327950288L;
  expect_close(
      math::cos_pi, [](long double x) { return std::cos(pi * x); }, -0.49, 0.49, 1.0);
  expect_close(
      math::cos_pi, [](long double x) { return std::cos(pi * x); }, 0.51, 1.49, 1.0);
  EXPECT_EQ(math::cos_pi(0), 1.0);
  EXPECT_EQ(math::cos_pi(0.5), 0.0);
  EXPECT_EQ(math::cos_pi(1), -1.0);
  EXPECT_EQ(math::cos_pi(1.5), 0.0);
  EXPECT_EQ(math::cos_pi(-3), -1.0);
}

}  // namespace
}  // namespace troupe::compute
