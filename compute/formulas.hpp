// The transcendental functions of the numerics contract, in fp32, written once for every
// arithmetic.
//
// Problem: libm and vector libraries give other bits on other machines, in vector bodies and in
// tails. Idea: each function is one fixed sequence of + - * / fma and integer operations, templated
// over the arithmetic that carries it out: one float (scalar_math.hpp), eight lanes
// (cpu/vector_math.hpp), or a device. Each of those operations is correctly rounded, so all
// arithmetics give the same bits. Not chosen: Highway's contrib math: good, but its bits belong to
// its version.
//
// An arithmetic M has M::real with + - * / < ==, M::bits (unsigned, wrapping) with + - and:
//   set(c), set_bits(c), fma(a, b, c) = a b + c, nfma(a, b, c) = c - a b,
//   maximum(a, b) = a > b ? a : b and minimum(a, b) = a < b ? a : b (the second if one is NaN),
//   magnitude(a), copy_sign(magnitude, sign), select(condition, yes, no),
//   to_bits, from_bits, left<n>, right<n>, both(bits, mask).
// The minimax coefficients were fitted by ourselves, rounded to fp32 one after another.
#pragma once

#include <cstdint>
#include <limits>

namespace troupe::compute::formulas {

template <class M, class... Lower>
typename M::real horner(typename M::real x, float highest, Lower... lower) {
  typename M::real sum = M::set(highest);
  ((sum = M::fma(sum, x, M::set(lower))), ...);
  return sum;
}

// e^r for |r| <= ln(2) / 2.
template <class M>
typename M::real exp_reduced(typename M::real r) {
  return horner<M>(r, 0x1.6a4b44p-10f, 0x1.123994p-7f, 0x1.5558b2p-5f, 0x1.555492p-3f,
                   0x1.fffffcp-2f, 1.0f, 1.0f);
}

// Adding this rounds a float below 2^22 to the nearest integer n, and leaves n + bias in the lowest
// bits of the sum: with the right bias those are an exponent field already.
constexpr float rounder(int bias) { return 0x1.8p23f + static_cast<float>(bias); }

// x - n ln(2) for the n nearest to x / ln(2); the first product and difference are exact.
template <class M>
typename M::real minus_logs_of_2(typename M::real n, typename M::real x) {
  return M::nfma(n, M::set(-0x1.05c61p-29f), M::nfma(n, M::set(0x1.62e43p-1f), x));
}

// Correct at both ends: subnormals are rounded once, exp(0) is 1.
template <class M>
typename M::real exp(typename M::real x) {
  const auto magic = M::set(rounder(2 * 127));
  x = M::minimum(M::set(89.0f), M::maximum(M::set(-104.0f), x));  // beyond: infinity and 0 anyway
  const auto k = M::fma(x, M::set(0x1.715476p+0f), magic);
  const auto y = exp_reduced<M>(minus_logs_of_2<M>(k - magic, x));
  // 2^n as a product of two powers, so that neither leaves the normal range.
  const auto n = M::to_bits(k);
  const auto half = M::template right<1>(n);
  return y * M::from_bits(M::template left<23>(half)) *
         M::from_bits(M::template left<23>(n - half));
}

// e^x where only 1 + e^x will be used: below -87 the value of -87, from 88.4 on infinity.
template <class M>
typename M::real exp_beside_one(typename M::real x) {
  const auto magic = M::set(rounder(127));
  x = M::minimum(M::set(89.0f), M::maximum(M::set(-87.0f), x));
  const auto k = M::fma(x, M::set(0x1.715476p+0f), magic);
  const auto y = exp_reduced<M>(minus_logs_of_2<M>(k - magic, x));
  return y * M::from_bits(M::template left<23>(M::to_bits(k)));
}

// 2^x for |x| <= 126.
template <class M>
typename M::real exp2_bounded(typename M::real x) {
  const auto magic = M::set(rounder(127));
  const auto k = x + magic;
  const auto y = horner<M>(x - (k - magic), 0x1.416f1ep-13f, 0x1.5f09a4p-10f, 0x1.3b2ddep-7f,
                           0x1.c6af7ap-5f, 0x1.ebfbdcp-3f, 0x1.62e430p-1f, 1.0f);
  return y * M::from_bits(M::template left<23>(M::to_bits(k)));
}

template <class M>
typename M::real log(typename M::real x) {
  const auto one = M::set(1.0f);
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)).
  const auto subnormal = x < M::set(0x1p-126f);
  const auto bits = M::to_bits(M::select(subnormal, x * M::set(0x1p23f), x));
  const auto shifted = bits + M::set_bits(0x3f800000u - 0x3f3504f3u);
  const auto exponent = M::from_bits(M::template right<23>(shifted) + M::set_bits(0x4b000000u));
  const auto e = exponent - M::select(subnormal, M::set(0x1p23f + 127 + 23), M::set(0x1p23f + 127));
  const auto f =
      M::from_bits(M::both(shifted, M::set_bits(0x007fffffu)) + M::set_bits(0x3f3504f3u)) - one;
  const auto square = f * f;
  const auto p =
      horner<M>(f, 0x1.14a356p-4f, -0x1.de484ep-4f, 0x1.e6d146p-4f, -0x1.fc206ep-4f, 0x1.233a38p-3f,
                -0x1.555c62p-3f, 0x1.99a482p-3f, -0x1.000006p-2f, 0x1.555548p-2f);
  auto y = f * square * p;
  y = M::fma(e, M::set(-0x1.05c61p-29f), y);
  y = M::nfma(M::set(0.5f), square, y) + f;
  y = M::fma(e, M::set(0x1.62e43p-1f), y);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float undefined = std::numeric_limits<float>::quiet_NaN();
  const auto zero = M::set(0.0f);
  y = M::select(x < M::set(infinity), y, x);
  return M::select(zero < x, y, M::select(x == zero, M::set(-infinity), M::set(undefined)));
}

template <class M>
typename M::real tanh(typename M::real x) {
  const auto one = M::set(1.0f);
  const auto a = M::magnitude(x);
  const auto square = a * a;
  const auto q = horner<M>(square, 0x1.1a372ap-9f, -0x1.0c61dcp-7f, 0x1.63a5b4p-6f, -0x1.b9f18cp-5f,
                           0x1.11107ap-3f, -0x1.555554p-2f);
  const auto near_zero = M::fma(a * square, q, a);
  const auto far = one - M::set(2.0f) / (one + exp_beside_one<M>(a + a));
  return M::copy_sign(M::select(a < M::set(0.625f), near_zero, far), x);
}

// 1 / (1 + e^-x); 0 below -88.4.
template <class M>
typename M::real sigmoid(typename M::real x) {
  const auto one = M::set(1.0f);
  return one / (one + exp_beside_one<M>(M::set(0.0f) - x));
}

template <class M>
typename M::real silu(typename M::real x) {
  return x / (M::set(1.0f) + exp_beside_one<M>(M::set(0.0f) - x));
}

template <class M>
struct value_and_derivative {
  typename M::real value, derivative;
};

// x s and s + x s (1 - s) with s the sigmoid of x, and e^-x s for 1 - s, which cancels nothing. For
// the derivative x is bounded to where it is 0 and 1 within rounding, which keeps 0 times infinity
// out.
template <class M>
value_and_derivative<M> silu_with_derivative(typename M::real x) {
  const auto one = M::set(1.0f);
  const auto bounded = M::minimum(M::set(87.0f), M::maximum(M::set(-87.0f), x));
  const auto e = exp_beside_one<M>(M::set(0.0f) - bounded);
  const auto s = one / (one + e);
  return {x * s, s * M::fma(bounded, e * s, one)};
}

// GELU in its tanh form, x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), which is
// x / (1 + e^(-2 u)); without the cancellation of 1 + tanh(u), and cheap enough for a product's
// store. The two constants are -2 log2(e) sqrt(2 / pi) and that times 0.044715.
template <class M>
typename M::real gelu(typename M::real x) {
  const auto t = x * M::fma(x * x, M::set(-0.10294324f), M::set(-2.3022082f));
  // 128 gives infinity and so -0, as it must be for a very negative x.
  const auto e = exp2_bounded<M>(M::minimum(M::set(128.0f), M::maximum(M::set(-126.0f), t)));
  return x / (M::set(1.0f) + e);
}

// s + x s (1 - s) 2 u' with s = 1 / (1 + e^(-2 u)), bounded like silu_with_derivative.
template <class M>
typename M::real gelu_derivative(typename M::real x) {
  const auto one = M::set(1.0f);
  x = M::minimum(M::set(10.0f), M::maximum(M::set(-10.0f), x));
  const auto square = x * x;
  const auto e = exp2_bounded<M>(x * M::fma(square, M::set(-0.10294324f), M::set(-2.3022082f)));
  const auto s = one / (one + e);
  const auto slope = M::fma(square, M::set(0.21406445f), M::set(1.5957691f));
  return M::fma(x * slope, s * (e * s), s);
}

}  // namespace troupe::compute::formulas
