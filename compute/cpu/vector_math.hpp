// The functions of formulas.hpp for a vector of floats. Everything in cpu/ is written for 8 lanes,
// whatever the registers of the machine, because lanes show in the bits of row reductions; a tail
// runs the same code on a padded vector.
#pragma once

#include <hwy/highway.h>

#include "compute/formulas.hpp"

namespace troupe::compute::cpu {

namespace hn = hwy::HWY_NAMESPACE;

using float_tag = hn::FixedTag<float, 8>;
using float_vector = hn::Vec<float_tag>;

template <class D>
struct vector_arithmetic {
  using real = hn::Vec<D>;
  using unsigned_tag = hn::RebindToUnsigned<D>;
  using bits = hn::Vec<unsigned_tag>;
  static real set(float c) { return hn::Set(D(), c); }
  static bits set_bits(std::uint32_t c) { return hn::Set(unsigned_tag(), c); }
  static real fma(real a, real b, real c) { return hn::MulAdd(a, b, c); }
  static real nfma(real a, real b, real c) { return hn::NegMulAdd(a, b, c); }
  // Highway leaves NaN open; on x86 the second operand comes out, and a test holds that down.
  static real maximum(real a, real b) { return hn::Max(a, b); }
  static real minimum(real a, real b) { return hn::Min(a, b); }
  static real magnitude(real a) { return hn::Abs(a); }
  static real copy_sign(real size, real sign) { return hn::CopySignToAbs(size, sign); }
  static real select(hn::Mask<D> condition, real yes, real no) {
    return hn::IfThenElse(condition, yes, no);
  }
  static bits to_bits(real a) { return hn::BitCast(unsigned_tag(), a); }
  static real from_bits(bits a) { return hn::BitCast(D(), a); }
  template <int n>
  static bits left(bits a) {
    return hn::ShiftLeft<n>(a);
  }
  template <int n>
  static bits right(bits a) {
    return hn::ShiftRight<n>(a);
  }
  static bits both(bits a, bits b) { return hn::And(a, b); }
};

template <class D, class V>
HWY_INLINE V exp(D, V x) {
  return formulas::exp<vector_arithmetic<D>>(x);
}
template <class D, class V>
HWY_INLINE V log(D, V x) {
  return formulas::log<vector_arithmetic<D>>(x);
}
template <class D, class V>
HWY_INLINE V tanh(D, V x) {
  return formulas::tanh<vector_arithmetic<D>>(x);
}
template <class D, class V>
HWY_INLINE V sigmoid(D, V x) {
  return formulas::sigmoid<vector_arithmetic<D>>(x);
}
template <class D, class V>
HWY_INLINE V silu(D, V x) {
  return formulas::silu<vector_arithmetic<D>>(x);
}
template <class D, class V>
HWY_INLINE V silu_derivative(D, V x) {
  return formulas::silu_with_derivative<vector_arithmetic<D>>(x).derivative;
}
template <class D, class V>
HWY_INLINE V gelu(D, V x) {
  return formulas::gelu<vector_arithmetic<D>>(x);
}
template <class D, class V>
HWY_INLINE V gelu_derivative(D, V x) {
  return formulas::gelu_derivative<vector_arithmetic<D>>(x);
}

}  // namespace troupe::compute::cpu
