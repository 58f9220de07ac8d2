// Small matrix products inside a tile of attention, and the packing they read.
//
// Problem: a block of scores is 64 keys wide and a head 64 elements deep; calling a general matrix
// product for pieces of that size costs more than the product, and the causal triangle would be
// computed whole. Idea: three register-blocked products, each with one chain of fused multiply-adds
// per element in a fixed order, over panels of W columns that are packed once per block. What lies
// beyond the diagonal is left out of a chain: not multiplied by zero, because -0 + 0 is +0 and 0 *
// inf is NaN, and a future token must not be able to change a bit. Columns are padded with zeros,
// the summed dimension never is.
//
// A "panel" form of a matrix holds W columns at a time, row after row: [columns / W][rows][W]. As
// the right factor it gives vectors, as the left one it gives scalars at constant distances; both
// read it in place.
#pragma once

#include <immintrin.h>

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

namespace troupe::compute::cpu::tiles {

namespace hn = hwy::HWY_NAMESPACE;

static_assert(HWY_STATIC_TARGET == HWY_AVX2 || HWY_STATIC_TARGET <= HWY_AVX3,
              "attention needs vectors with fused multiply-add");

using tag8 = hn::FixedTag<float, 8>;
using vec8 = hn::Vec<tag8>;

inline constexpr std::size_t key_block =
    64;  // enters the bits: never changes within a numerics version

constexpr std::size_t round_up(std::size_t n, std::size_t step) {
  return (n + step - 1) / step * step;
}

// How an accumulator tile begins: at +0, at what is in memory, or at that times a factor per row.
enum class start { zero, load, rescale };

template <class Tag, int Rows>
struct products {
  using vec = hn::Vec<Tag>;
  static constexpr std::size_t half = hn::MaxLanes(Tag());
  static constexpr std::size_t width = 2 * half;  // W
  static constexpr int rows = Rows;

  // out[r][c] = chain over d of a[r][d] * b[d][c]. `a`: the strip's first row in panel form, panels
  // `a_panel` floats apart; `b`: [depth][W].
  static HWY_INLINE void scores(const float* HWY_RESTRICT a, std::size_t a_panel,
                                const float* HWY_RESTRICT b, std::size_t depth,
                                float* HWY_RESTRICT out, std::size_t out_stride) {
    tile t;
    t.template begin<start::zero>(out, out_stride, nullptr);
    for (; depth > width; depth -= width, a += a_panel) {
      for (std::size_t d = 0; d < width; ++d, b += width) {
        t.template step<0, Rows>(a + d, width, b);
      }
    }
    for (std::size_t d = 0; d < depth; ++d, b += width) t.template step<0, Rows>(a + d, width, b);
    t.store(out, out_stride);
  }

  // out[r][c] continues by the chain over keys of a[r][key] * b[key][c]. `a`: [Rows][64], `b`:
  // [keys][W]. Row r sees keys below diagonal + r, where `diagonal` may be anything; all see only
  // keys below `keys`.
  template <start Start>
  static HWY_INLINE void over_keys(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                                   std::ptrdiff_t diagonal, std::size_t keys,
                                   float* HWY_RESTRICT out, std::size_t out_stride,
                                   const float* HWY_RESTRICT factor) {
    tile t;
    t.template begin<Start>(out, out_stride, factor);
    const auto end = static_cast<std::ptrdiff_t>(keys);
    const std::ptrdiff_t full = std::clamp<std::ptrdiff_t>(diagonal, 0, end);
    const float* row = b;
    for (std::ptrdiff_t key = 0; key < full; ++key, row += width) {
      t.template step<0, Rows>(a + key, key_block, row);
    }
    if (full < end) triangle_of_keys<1>(t, a, b, diagonal, end);
    t.store(out, out_stride);
  }

  // out[r][c] continues by the chain over queries of a[query][r] * b[query][c]. `a`: [queries][64],
  // `b`: [queries][W]. Row r is seen by queries at or after first + r, where `first` may be
  // negative.
  static HWY_INLINE void over_queries(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                                      std::ptrdiff_t first, std::size_t queries,
                                      float* HWY_RESTRICT out, std::size_t out_stride) {
    tile t;
    t.template begin<start::load>(out, out_stride, nullptr);
    const auto end = static_cast<std::ptrdiff_t>(queries);
    if (first + Rows - 1 > 0) triangle_of_queries<1>(t, a, b, first, end);
    for (std::ptrdiff_t i = std::max<std::ptrdiff_t>(first + Rows - 1, 0); i < end; ++i) {
      t.template step<0, Rows>(a + i * static_cast<std::ptrdiff_t>(key_block), 1,
                               b + i * static_cast<std::ptrdiff_t>(width));
    }
    t.store(out, out_stride);
  }

 private:
  struct tile {
    vec low[Rows], high[Rows];

    template <start Start>
    HWY_INLINE void begin(const float* out, std::size_t stride, const float* factor) {
      const Tag d;
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        if constexpr (Start == start::zero) {
          low[r] = high[r] = hn::Zero(d);
        } else {
          low[r] = hn::LoadU(d, out + static_cast<std::size_t>(r) * stride);
          high[r] = hn::LoadU(d, out + static_cast<std::size_t>(r) * stride + half);
        }
        if constexpr (Start == start::rescale) {
          const vec f = hn::Set(d, factor[r]);
          low[r] = hn::Mul(low[r], f);
          high[r] = hn::Mul(high[r], f);
        }
      }
    }

    template <int First, int Last>
    HWY_INLINE void step(const float* a, std::size_t a_stride, const float* b) {
      const Tag d;
      const vec b0 = hn::Load(d, b);
      const vec b1 = hn::Load(d, b + half);
#pragma GCC unroll 16
      for (int r = First; r < Last; ++r) {
        const vec x = hn::Set(d, a[static_cast<std::size_t>(r) * a_stride]);
        low[r] = hn::MulAdd(x, b0, low[r]);
        high[r] = hn::MulAdd(x, b1, high[r]);
      }
    }

    HWY_INLINE void store(float* out, std::size_t stride) const {
      const Tag d;
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        hn::StoreU(low[r], d, out + static_cast<std::size_t>(r) * stride);
        hn::StoreU(high[r], d, out + static_cast<std::size_t>(r) * stride + half);
      }
    }
  };

  template <int First>
  static HWY_INLINE void triangle_of_keys(tile& t, const float* a, const float* b,
                                          std::ptrdiff_t diagonal, std::ptrdiff_t end) {
    if constexpr (First < Rows) {
      const std::ptrdiff_t key = diagonal + First - 1;
      if (key >= 0 && key < end) {
        t.template step<First, Rows>(a + key, key_block,
                                     b + key * static_cast<std::ptrdiff_t>(width));
      }
      triangle_of_keys<First + 1>(t, a, b, diagonal, end);
    }
  }

  template <int Last>
  static HWY_INLINE void triangle_of_queries(tile& t, const float* a, const float* b,
                                             std::ptrdiff_t first, std::ptrdiff_t end) {
    if constexpr (Last < Rows) {
      const std::ptrdiff_t i = first + Last - 1;
      if (i >= 0 && i < end) {
        t.template step<0, Last>(a + i * static_cast<std::ptrdiff_t>(key_block), 1,
                                 b + i * static_cast<std::ptrdiff_t>(width));
      }
      triangle_of_queries<Last + 1>(t, a, b, first, end);
    }
  }
};

// Panel form of from[rows][columns] with room for `capacity` rows a panel; rows up to `padded` are
// zero.
template <std::size_t Width>
void pack_panels(const float* from, std::size_t stride, std::size_t rows, std::size_t columns,
                 std::size_t padded, float* to, std::size_t capacity) {
  const tag8 d;
  const std::size_t whole = columns / Width * Width;
  const std::size_t panel = capacity * Width;
  for (std::size_t r = 0; r < rows; ++r, from += stride) {
    float* target = to + r * Width;
    for (std::size_t c = 0; c < whole; c += Width, target += panel) {
      for (std::size_t j = 0; j < Width; j += 8) {
        hn::Store(hn::LoadU(d, from + c + j), d, target + j);
      }
    }
    if (whole == columns) continue;
    for (std::size_t j = 0; j < Width; ++j) {
      target[j] = whole + j < columns ? from[whole + j] : 0.0f;
    }
  }
  for (std::size_t c = 0; c < columns; c += Width, to += panel) {
    std::fill(to + rows * Width, to + padded * Width, 0.0f);
  }
}

// Row `row` of a panel form, times `factor`, to `to`.
template <std::size_t Width>
void unpack_row(const float* from, std::size_t capacity, std::size_t row, std::size_t columns,
                float factor, float* to) {
  const tag8 d;
  from += row * Width;
  std::size_t c = 0;
  for (; c + 8 <= columns; c += 8) {
    const float* const source = from + c / Width * capacity * Width + c % Width;
    hn::StoreU(hn::Mul(hn::Load(d, source), hn::Set(d, factor)), d, to + c);
  }
  for (; c < columns; ++c) to[c] = from[c / Width * capacity * Width + c % Width] * factor;
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
template <std::size_t Width>
void pack_transposed(const float* from, std::size_t stride, std::size_t keys, std::size_t depth,
                     float* to) {
  for (std::size_t k = 0; k < round_up(keys, Width); k += 8) {
    const float* source = from + k * stride;
    float* target = to + k / Width * depth * Width + k % Width;
    std::size_t d = 0;
    if (k + 8 <= keys) {
      for (; d + 8 <= depth; d += 8) transpose8(source + d, stride, target + d * Width, Width);
    }
    const std::size_t n = k < keys ? std::min<std::size_t>(8, keys - k) : 0;
    for (; d < depth; ++d) {
      for (std::size_t j = 0; j < 8; ++j) {
        target[d * Width + j] = j < n ? source[j * stride + d] : 0.0f;
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

}  // namespace troupe::compute::cpu::tiles
