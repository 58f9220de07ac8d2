// Packing into the panel forms of attention_kernel.hpp, and the reductions of a row.
#pragma once

#include <immintrin.h>

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

#include "compute/cpu/attention_kernel.hpp"

namespace troupe::compute::cpu::panels {

namespace hn = hwy::HWY_NAMESPACE;

using tag8 = hn::FixedTag<float, 8>;
using vec8 = hn::Vec<tag8>;

constexpr std::size_t round_up(std::size_t n, std::size_t step) {
  return (n + step - 1) / step * step;
}

// Panel form of from[rows][columns] with room for `capacity` rows a panel; rows up to `padded` are
// zero.
inline void pack_panels(std::size_t width, const float* from, std::size_t stride, std::size_t rows,
                        std::size_t columns, std::size_t padded, float* to, std::size_t capacity) {
  const tag8 d;
  const std::size_t whole = columns / width * width;
  const std::size_t panel = capacity * width;
  for (std::size_t r = 0; r < rows; ++r, from += stride) {
    float* target = to + r * width;
    for (std::size_t c = 0; c < whole; c += width, target += panel) {
      for (std::size_t j = 0; j < width; j += 8) {
        hn::Store(hn::LoadU(d, from + c + j), d, target + j);
      }
    }
    if (whole == columns) continue;
    for (std::size_t j = 0; j < width; ++j) {
      target[j] = whole + j < columns ? from[whole + j] : 0.0f;
    }
  }
  for (std::size_t c = 0; c < columns; c += width, to += panel) {
    std::fill(to + rows * width, to + padded * width, 0.0f);
  }
}

// Row `row` of a panel form, times `factor`, to `to`.
inline void unpack_row(std::size_t width, const float* from, std::size_t capacity, std::size_t row,
                       std::size_t columns, float factor, float* to) {
  const tag8 d;
  const vec8 f = hn::Set(d, factor);
  from += row * width;
  for (std::size_t c = 0; c < columns; c += width, from += capacity * width) {
    const std::size_t n = std::min(width, columns - c);
    std::size_t j = 0;
    for (; j + 8 <= n; j += 8) hn::StoreU(hn::Mul(hn::Load(d, from + j), f), d, to + c + j);
    for (; j < n; ++j) to[c + j] = from[j] * factor;
  }
}

HWY_INLINE void transpose8(const float* from, std::size_t from_stride, float* to,
                           std::size_t to_stride) {
  __m256 r[8], t[8];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_stride);
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
#pragma GCC unroll 2
  for (std::size_t i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
  }
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i) {
    _mm256_store_ps(to + i * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_store_ps(to + (i + 4) * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

// Panel form of the transpose of from[keys][depth]: [64 / W][depth][W]. Columns without a key are
// zero.
inline void pack_transposed(std::size_t width, const float* from, std::size_t stride,
                            std::size_t keys, std::size_t depth, float* to) {
  for (std::size_t k = 0; k < round_up(keys, width); k += 8) {
    const float* source = from + k * stride;
    float* target = to + k / width * depth * width + k % width;
    std::size_t d = 0;
    if (k + 8 <= keys) {
      for (; d + 8 <= depth; d += 8) transpose8(source + d, stride, target + d * width, width);
    }
    const std::size_t n = k < keys ? std::min<std::size_t>(8, keys - k) : 0;
    for (; d < depth; ++d) {
      for (std::size_t j = 0; j < 8; ++j) {
        target[d * width + j] = j < n ? source[j * stride + d] : 0.0f;
      }
    }
  }
}

// The fixed fold of 8 lanes: lane j takes j + 4, then j + 2, then j + 1.
inline float fold_sum(vec8 v) {
  alignas(32) float x[8];
  hn::Store(v, tag8(), x);
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

inline float fold_max(vec8 v) {
  const __m256 x = v.raw;
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// Lanes below n are true.
inline hn::Mask<tag8> lanes_below(std::size_t n) { return hn::FirstN(tag8(), n); }

}  // namespace troupe::compute::cpu::panels
