// Rows of floats in steps of 8 lanes. Column c lies in lane c mod 8, and the last step, which may
// have fewer columns, runs the same code on masked loads and stores: lanes beyond the row read as
// +0.
#pragma once

#include <cstddef>

#include "compute/cpu/vector_math.hpp"

namespace troupe::compute::cpu {

struct all_lanes {};
struct first_lanes {
  hn::Mask<float_tag> mask;
};

HWY_INLINE float_vector load(const float* from, all_lanes) { return hn::LoadU(float_tag(), from); }
HWY_INLINE float_vector load(const float* from, first_lanes lanes) {
  return hn::MaskedLoad(lanes.mask, float_tag(), from);
}
HWY_INLINE void store(float_vector v, float* to, all_lanes) { hn::StoreU(v, float_tag(), to); }
HWY_INLINE void store(float_vector v, float* to, first_lanes lanes) {
  hn::BlendedStore(v, lanes.mask, float_tag(), to);
}
// v inside the row, and `outside` beyond its end.
HWY_INLINE float_vector inside(float_vector v, all_lanes, float_vector) { return v; }
HWY_INLINE float_vector inside(float_vector v, first_lanes lanes, float_vector outside) {
  return hn::IfThenElse(lanes.mask, v, outside);
}
HWY_INLINE float_vector inside(float_vector v, all_lanes) { return v; }
HWY_INLINE float_vector inside(float_vector v, first_lanes lanes) {
  return hn::IfThenElseZero(lanes.mask, v);
}

// step(column, lanes) for columns begin, begin + 8, ...
template <class Step>
HWY_INLINE void for_lanes(std::size_t begin, std::size_t end, const Step& step) {
  std::size_t column = begin;
  for (; column + 8 <= end; column += 8) step(column, all_lanes());
  if (column < end) step(column, first_lanes{hn::FirstN(float_tag(), end - column)});
}
template <class Step>
HWY_INLINE void for_lanes(std::size_t width, const Step& step) {
  for_lanes(0, width, step);
}

// The sum of 8 lanes, always in this order: lanes 4 apart, then 2 apart, then 1 apart.
template <class T>
T fold(const T (&lane)[8]) {
  const T a = lane[0] + lane[4], b = lane[1] + lane[5], c = lane[2] + lane[6],
          d = lane[3] + lane[7];
  return (a + c) + (b + d);
}
HWY_INLINE float fold(float_vector v) {
  alignas(32) float lane[8];
  hn::Store(v, float_tag(), lane);
  return fold(lane);
}

}  // namespace troupe::compute::cpu
