// The functions of formulas.hpp for one float: the reference for kernels and tests, and for the few
// numbers that are computed outside of kernels.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "compute/formulas.hpp"

namespace troupe::compute::scalar {

struct arithmetic {
  using real = float;
  using bits = std::uint32_t;
  static float set(float c) { return c; }
  static bits set_bits(bits c) { return c; }
  static float fma(float a, float b, float c) { return std::fma(a, b, c); }
  static float nfma(float a, float b, float c) { return std::fma(-a, b, c); }
  static float maximum(float a, float b) { return a > b ? a : b; }
  static float minimum(float a, float b) { return a < b ? a : b; }
  static float magnitude(float a) { return std::fabs(a); }
  static float copy_sign(float size, float sign) { return std::copysign(size, sign); }
  static float select(bool condition, float yes, float no) { return condition ? yes : no; }
  static bits to_bits(float a) { return std::bit_cast<bits>(a); }
  static float from_bits(bits a) { return std::bit_cast<float>(a); }
  template <int n>
  static bits left(bits a) {
    return a << n;
  }
  template <int n>
  static bits right(bits a) {
    return a >> n;
  }
  static bits both(bits a, bits b) { return a & b; }
};

inline float exp(float x) { return formulas::exp<arithmetic>(x); }
inline float log(float x) { return formulas::log<arithmetic>(x); }
inline float tanh(float x) { return formulas::tanh<arithmetic>(x); }
inline float sigmoid(float x) { return formulas::sigmoid<arithmetic>(x); }
inline float silu(float x) { return formulas::silu<arithmetic>(x); }
inline float silu_derivative(float x) {
  return formulas::silu_with_derivative<arithmetic>(x).derivative;
}
inline float gelu(float x) { return formulas::gelu<arithmetic>(x); }
inline float gelu_derivative(float x) { return formulas::gelu_derivative<arithmetic>(x); }

}  // namespace troupe::compute::scalar
