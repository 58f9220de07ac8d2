// The body of attention_kernel.hpp for any register type. In an unnamed namespace on purpose: every
// including file is compiled with other flags and must get its own copy. Arrays with constant
// bounds and unrolled loops become registers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/cpu/attention_kernel.hpp"
#include "compute/formulas.hpp"

namespace troupe::compute::cpu {
namespace {

enum class start { zero, load, rescale };

template <class Vector, int Rows>
struct attention_tile {
  using type = typename Vector::type;
  static constexpr std::size_t lanes = Vector::lanes;
  static constexpr std::ptrdiff_t width = 2 * lanes;
  static constexpr std::ptrdiff_t row = key_block;
  type low[Rows], high[Rows];

  template <start Start>
  [[gnu::always_inline]] inline void begin(const float* out, std::size_t stride,
                                           const float* factor) {
#pragma GCC unroll 8
    for (std::size_t r = 0; r < Rows; ++r) {
      if constexpr (Start == start::zero) {
        low[r] = high[r] = Vector::broadcast(0.0f);
      } else {
        low[r] = Vector::load(out + r * stride);
        high[r] = Vector::load(out + r * stride + lanes);
      }
      if constexpr (Start == start::rescale) {
        low[r] = low[r] * Vector::broadcast(factor[r]);
        high[r] = high[r] * Vector::broadcast(factor[r]);
      }
    }
  }

  // One link of the chains of rows First ... Last - 1.
  template <int First, int Last>
  [[gnu::always_inline]] inline void step(const float* a, std::ptrdiff_t a_stride, const float* b) {
    const type b0 = Vector::load(b), b1 = Vector::load(b + lanes);
#pragma GCC unroll 8
    for (int r = First; r < Last; ++r) {
      const type x = Vector::broadcast(a[r * a_stride]);
      low[r] = Vector::fma(x, b0, low[r]);
      high[r] = Vector::fma(x, b1, high[r]);
    }
  }

  [[gnu::always_inline]] inline void end(float* out, std::size_t stride) const {
#pragma GCC unroll 8
    for (std::size_t r = 0; r < Rows; ++r) {
      Vector::store(out + r * stride, low[r]);
      Vector::store(out + r * stride + lanes, high[r]);
    }
  }

  // Keys that only rows First, First + 1 ... see, and so on.
  template <int First>
  [[gnu::always_inline]] inline void triangle_of_keys(const float* a, const float* b,
                                                      std::ptrdiff_t diagonal,
                                                      std::ptrdiff_t keys) {
    if constexpr (First < Rows) {
      const std::ptrdiff_t key = diagonal + First - 1;
      if (key >= 0 && key < keys) step<First, Rows>(a + key, row, b + key * width);
      triangle_of_keys<First + 1>(a, b, diagonal, keys);
    }
  }

  // Queries that only rows 0 ... Last - 1 are seen by, and so on.
  template <int Last>
  [[gnu::always_inline]] inline void triangle_of_queries(const float* a, const float* b,
                                                         std::ptrdiff_t first,
                                                         std::ptrdiff_t queries) {
    if constexpr (Last < Rows) {
      const std::ptrdiff_t query = first + Last - 1;
      if (query >= 0 && query < queries) step<0, Last>(a + query * row, 1, b + query * width);
      triangle_of_queries<Last + 1>(a, b, first, queries);
    }
  }
};

template <class Vector, int Rows>
void tile_scores(const float* a, std::size_t a_panel, const float* b, std::size_t depth,
                 float* out) {
  using tile = attention_tile<Vector, Rows>;
  constexpr std::size_t width = tile::width;
  tile t;
  t.template begin<start::zero>(out, key_block, nullptr);
  for (; depth >= width; depth -= width, a += a_panel) {
#pragma GCC unroll 4
    for (std::size_t d = 0; d < width; ++d, b += width) {
      t.template step<0, Rows>(a + d, tile::width, b);
    }
  }
  for (std::size_t d = 0; d < depth; ++d, b += width) {
    t.template step<0, Rows>(a + d, tile::width, b);
  }
  t.end(out, key_block);
}

template <class Vector, int Rows, start Start>
void tile_over_keys(const float* a, const float* b, std::ptrdiff_t diagonal, std::size_t keys,
                    float* out, std::size_t out_stride, const float* factor) {
  using tile = attention_tile<Vector, Rows>;
  tile t;
  t.template begin<Start>(out, out_stride, factor);
  const auto end = static_cast<std::ptrdiff_t>(keys);
  const std::ptrdiff_t full = diagonal < end ? diagonal : end;
#pragma GCC unroll 2
  for (std::ptrdiff_t key = 0; key < full; ++key) {
    t.template step<0, Rows>(a + key, tile::row, b + key * tile::width);
  }
  if (diagonal < end) t.template triangle_of_keys<1>(a, b, diagonal, end);
  t.end(out, out_stride);
}

template <class Vector, int Rows>
void tile_over_queries(const float* a, const float* b, std::ptrdiff_t first, std::size_t queries,
                       float* out) {
  using tile = attention_tile<Vector, Rows>;
  tile t;
  t.template begin<start::load>(out, tile::width, nullptr);
  const auto end = static_cast<std::ptrdiff_t>(queries);
  const std::ptrdiff_t full = first + Rows - 1;
  if (full > 0) t.template triangle_of_queries<1>(a, b, first, end);
#pragma GCC unroll 2
  for (std::ptrdiff_t i = full > 0 ? full : 0; i < end; ++i) {
    t.template step<0, Rows>(a + i * tile::row, 1, b + i * tile::width);
  }
  t.end(out, tile::width);
}

// The arithmetic of formulas.hpp on a register; the compiler's vector types bring the operators.
template <class Vector>
struct register_arithmetic {
  using real = typename Vector::type;
  using bits = typename Vector::bits;
  static real set(float c) { return Vector::broadcast(c); }
  static real fma(real a, real b, real c) { return Vector::fma(a, b, c); }
  static real nfma(real a, real b, real c) { return Vector::fma(-a, b, c); }
  static real maximum(real a, real b) { return Vector::maximum(a, b); }
  static real minimum(real a, real b) { return Vector::minimum(a, b); }
  static bits to_bits(real a) { return reinterpret_cast<bits>(a); }
  static real from_bits(bits a) { return reinterpret_cast<real>(a); }
  template <int n>
  static bits left(bits a) {
    return a << n;
  }
  template <int n>
  static bits right(bits a) {
    return a >> n;
  }
};

template <class Vector>
void row_exponentials(float* p, std::size_t count, float top, float scale, float* sums) {
  using M = register_arithmetic<Vector>;
  const auto t = M::set(top), s = M::set(scale);
  auto sum = Vector::load_sums(sums);
  std::size_t c = 0;
  for (; c + Vector::lanes <= count; c += Vector::lanes) {
    const auto e = formulas::exp<M>((Vector::load(p + c) - t) * s);
    sum = Vector::add_to_sums(sum, e);
    Vector::store(p + c, e);
  }
  if (c < count) {
    // A sum is never -0, so that the zeros of the tail leave it as it is.
    const auto e = Vector::first(count - c, formulas::exp<M>((Vector::load(p + c) - t) * s));
    sum = Vector::add_to_sums(sum, e);
    Vector::store(p + c, e);
  }
  Vector::store_sums(sums, sum);
}

template <class Vector>
void row_gradients(float* p, float* g, std::size_t count, float scale, float lse, float product) {
  using M = register_arithmetic<Vector>;
  const auto s = M::set(scale), l = M::set(-lse), d = M::set(product);
  for (std::size_t c = 0; c < count; c += Vector::lanes) {
    const auto e = formulas::exp<M>(M::fma(Vector::load(p + c), s, l));
    Vector::store(p + c, e);
    Vector::store(g + c, (e * (Vector::load(g + c) - d)) * s);
  }
}

template <class Vector, int Rows>
constexpr attention_kernel make_attention_kernel() {
  static_assert(Rows <= attention_kernel::most_rows && key_block % (2 * Vector::lanes) == 0);
  return {Rows,
          2 * Vector::lanes,
          tile_scores<Vector, Rows>,
          tile_over_keys<Vector, Rows, start::zero>,
          tile_over_keys<Vector, Rows, start::load>,
          tile_over_keys<Vector, Rows, start::rescale>,
          tile_over_queries<Vector, Rows>,
          row_exponentials<Vector>,
          row_gradients<Vector>};
}

}  // namespace
}  // namespace troupe::compute::cpu
