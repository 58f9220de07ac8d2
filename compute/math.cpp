#include "compute/math.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "config/base/error.hpp"

// Series instead of fitted polynomials: at these lengths the first term left out lies below 2^-56
// of the sum.
namespace troupe::compute::math {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
constexpr double ln2 = 0x1.62e42fefa39efp-1;
constexpr double ln2_rest = 0x1.abc9e3b39803fp-56;

// high + low with |low| at most half an ulp of high.
struct double_double {
  double high, low;
};

// Exact sum of a and b where |a| >= |b| or a is 0.
double_double quick_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

double nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }  // |x| below 2^51

double power_of_two(int n) {  // -1022 ... 1023
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

// log(x) for 0 < x < infinity: with x = 2^e m, log(m) = 2 atanh(s), s = (m - 1) / (m + 1).
double_double log_parts(double x) {
  int e = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    e = -54;
  }
  const std::uint64_t root = std::bit_cast<std::uint64_t>(0x1.6a09e667f3bcdp-1);  // sqrt(1/2)
  const std::uint64_t one = std::bit_cast<std::uint64_t>(1.0);
  const std::uint64_t shifted = std::bit_cast<std::uint64_t>(x) + (one - root);
  e += static_cast<int>(shifted >> 52) - 1023;
  const double m = std::bit_cast<double>((shifted & 0x000fffffffffffffu) + root);
  const double f = m - 1.0;
  const double sum = f + 2.0;
  const double s = f / sum;
  // What the division and the sum left over.
  const double s_rest = (std::fma(-s, sum, f) - s * (f - (sum - 2.0))) / sum;
  const double z = s * s;
  double p = 2.0 / 25;
  for (int k = 23; k >= 3; k -= 2) p = std::fma(p, z, 2.0 / k);
  const double tail = std::fma(p * z, s, 2.0 * s_rest);
  const double_double log_m = quick_sum(2.0 * s, tail);
  if (e == 0) return log_m;
  constexpr double ln2_short = 0x1.62e42fefa2p-1;  // times e: exact
  constexpr double ln2_short_rest = 0x1.9ef35793c7673p-41;
  const double_double total = quick_sum(e * ln2_short, log_m.high);
  return quick_sum(total.high, total.low + std::fma(e, ln2_short_rest, log_m.low));
}

// Sine and cosine of high + low, |high| <= pi / 4.
double sin_reduced(double_double x) {
  const double z = x.high * x.high;
  constexpr double factorials[] = {
      -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880,
      -1.0 / 5040,          1.0 / 120,        -1.0 / 6};
  double p = 1.0 / 355687428096000;
  for (const double c : factorials) p = std::fma(p, z, c);
  return x.high + std::fma(p * z, x.high, x.low * std::fma(-0.5, z, 1.0));
}

double cos_reduced(double_double x) {
  const double z = x.high * x.high;
  constexpr double factorials[] = {-1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800,
                                   1.0 / 40320,        -1.0 / 720,      1.0 / 24};
  double p = 1.0 / 20922789888000;
  for (const double c : factorials) p = std::fma(p, z, c);
  const double first = std::fma(-0.5, z, 1.0);
  const double left_over = std::fma(-0.5, z, 1.0 - first);
  return first + (left_over + std::fma(p * z, z, -x.high * x.low));
}

double cos_of_quarter(std::int64_t quarter, double_double rest) {
  switch (quarter & 3) {
    case 0:
      return cos_reduced(rest);
    case 1:
      return -sin_reduced(rest);
    case 2:
      return -cos_reduced(rest);
    default:
      return sin_reduced(rest);
  }
}

// cos(x - shift quarter turns).
double cos_shifted(double x, int shift) {
  if (!(std::fabs(x) < infinity)) return undefined;
  ensure(std::fabs(x) < 0x1p31, "sine and cosine are computed for angles below 2^31 only");
  // pi / 2 in three parts; x - n part1 is exact.
  const double n = nearest(x * 0x1.45f306dc9c883p-1);
  const double rest = std::fma(-n, 0x1.921fb54442d18p+0, x);
  const double product = n * 0x1.1a62633145c07p-54;
  const double high = rest - product;
  double low = (rest - high) - product;
  low -= std::fma(n, 0x1.1a62633145c07p-54, -product);
  low -= n * -0x1.f1976b7ed8fbcp-110;
  return cos_of_quarter(static_cast<std::int64_t>(n) - shift, quick_sum(high, low));
}

}  // namespace

double exp(double x) {
  if (!(x < 710.0)) return x + infinity;  // overflow, infinity, NaN
  if (x < -746.0) return 0.0;
  const double n = nearest(x * 0x1.71547652b82fep+0);
  const double r = std::fma(-n, ln2_rest, std::fma(-n, ln2, x));
  constexpr double factorials[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                                   1.0 / 40320,     1.0 / 5040,     1.0 / 720,     1.0 / 120,
                                   1.0 / 24,        1.0 / 6,        0.5,           1.0};
  double y = 1.0 / 6227020800;
  for (const double c : factorials) y = std::fma(y, r, c);
  y = std::fma(y, r, 1.0);
  const int power = static_cast<int>(n);
  const int half = power / 2;  // two factors, so that neither leaves the normal range
  return y * power_of_two(half) * power_of_two(power - half);
}

double log(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -infinity : undefined;
  if (x == infinity) return x;
  return log_parts(x).high;
}

double pow(double x, double y) {
  if (y == 0.0) return 1.0;
  if (!(x > 0.0) || x == infinity) return exp(y * log(x));
  const double_double l = log_parts(x);
  const double product = y * l.high;
  const double power = exp(product);
  if (power == 0.0 || !(power < infinity)) return power;
  const double rest = std::fma(y, l.low, std::fma(y, l.high, -product));
  return std::fma(power, rest, power);
}

double sin(double x) { return cos_shifted(x, 1); }

double cos(double x) { return cos_shifted(x, 0); }

double cos_pi(double x) {
  if (!(std::fabs(x) < infinity)) return undefined;
  ensure(std::fabs(x) < 0x1p50, "cos_pi needs an argument below 2^50");
  const double n = nearest(2.0 * x);
  const double r = x - 0.5 * n;
  const double high = r * 0x1.921fb54442d18p+1;
  const double low = std::fma(r, 0x1.1a62633145c07p-53, std::fma(r, 0x1.921fb54442d18p+1, -high));
  return cos_of_quarter(static_cast<std::int64_t>(n), {high, low});
}

}  // namespace troupe::compute::math
