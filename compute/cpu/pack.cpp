#include "compute/cpu/pack.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "config/base/error.hpp"

namespace troupe::compute::cpu {
namespace {

// Eight lines of eight k each become eight k of eight lines. Halves are joined while loading, which
// the processor does outside of its shuffle unit.
void transpose_8x8(const float* from, std::size_t stride, float* to, std::size_t width) {
  const auto halves = [&](std::size_t line, std::size_t k) {
    const __m128 low = _mm_loadu_ps(from + line * stride + k);
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low),
                                _mm_loadu_ps(from + (line + 4) * stride + k), 1);
  };
  for (std::size_t k = 0; k < 8; k += 4) {
    const __m256 r0 = halves(0, k), r1 = halves(1, k), r2 = halves(2, k), r3 = halves(3, k);
    const __m256 t0 = _mm256_unpacklo_ps(r0, r1), t1 = _mm256_unpackhi_ps(r0, r1);
    const __m256 t2 = _mm256_unpacklo_ps(r2, r3), t3 = _mm256_unpackhi_ps(r2, r3);
    _mm256_storeu_ps(to + (k + 0) * width, _mm256_shuffle_ps(t0, t2, _MM_SHUFFLE(1, 0, 1, 0)));
    _mm256_storeu_ps(to + (k + 1) * width, _mm256_shuffle_ps(t0, t2, _MM_SHUFFLE(3, 2, 3, 2)));
    _mm256_storeu_ps(to + (k + 2) * width, _mm256_shuffle_ps(t1, t3, _MM_SHUFFLE(1, 0, 1, 0)));
    _mm256_storeu_ps(to + (k + 3) * width, _mm256_shuffle_ps(t1, t3, _MM_SHUFFLE(3, 2, 3, 2)));
  }
}

void transpose_4x4(const float* from, std::size_t stride, float* to, std::size_t width) {
  __m128 r0 = _mm_loadu_ps(from), r1 = _mm_loadu_ps(from + stride);
  __m128 r2 = _mm_loadu_ps(from + 2 * stride), r3 = _mm_loadu_ps(from + 3 * stride);
  _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
  _mm_storeu_ps(to, r0);
  _mm_storeu_ps(to + width, r1);
  _mm_storeu_ps(to + 2 * width, r2);
  _mm_storeu_ps(to + 3 * width, r3);
}

void transpose_lines(const float* from, std::size_t stride, std::size_t count, std::size_t depth,
                     std::size_t width, float* to) {
  const std::size_t blocks = depth / 8 * 8;
  for (std::size_t k = 0; k < blocks; k += 8) {
    std::size_t line = 0;
    for (; line + 8 <= count; line += 8) {
      transpose_8x8(from + line * stride + k, stride, to + k * width + line, width);
    }
    for (; line + 4 <= count; line += 4) {
      transpose_4x4(from + line * stride + k, stride, to + k * width + line, width);
      transpose_4x4(from + line * stride + k + 4, stride, to + (k + 4) * width + line, width);
    }
    for (; line < count; ++line) {
      for (std::size_t i = k; i < k + 8; ++i) to[i * width + line] = from[line * stride + i];
    }
  }
  for (std::size_t k = blocks; k < depth; ++k) {
    for (std::size_t line = 0; line < count; ++line) {
      to[k * width + line] = from[line * stride + k];
    }
  }
}

// Panels side by side, so that a line of the cache is read once.
template <std::size_t Width, std::size_t Panels>
void copy_panels(const float* from, std::size_t stride, std::size_t depth, float* to) {
  for (std::size_t k = 0; k < depth; ++k) {
    for (std::size_t p = 0; p < Panels; ++p) {
      std::memcpy(to + (p * depth + k) * Width, from + k * stride + p * Width,
                  Width * sizeof(float));
    }
  }
}

using copy_function = void (*)(const float* from, std::size_t stride, std::size_t depth, float* to);

struct copy_plan {
  std::size_t panels;  // that the first function copies
  copy_function several, one;
};

copy_plan plan_for(std::size_t width) {
  switch (width) {
    case 4:
      return {4, copy_panels<4, 4>, copy_panels<4, 1>};
    case 8:
      return {2, copy_panels<8, 2>, copy_panels<8, 1>};
    case 24:
      return {1, copy_panels<24, 1>, copy_panels<24, 1>};
    case 48:
      return {1, copy_panels<48, 1>, copy_panels<48, 1>};
  }
  ensure(false, "a matrix product was packed for a tile of unknown width");
  return {};
}

void copy_lines(const float* from, std::size_t stride, std::size_t count, std::size_t depth,
                std::size_t width, float* to) {
  const copy_plan plan = plan_for(width);
  std::size_t line = 0;
  for (; line + plan.panels * width <= count; line += plan.panels * width) {
    plan.several(from + line, stride, depth, to + line * depth);
  }
  for (; line + width <= count; line += width) {
    plan.one(from + line, stride, depth, to + line * depth);
  }
  for (std::size_t k = 0; k < depth && line < count; ++k) {
    copy_floats(from + k * stride + line, count - line, to + line * depth + k * width);
  }
}

}  // namespace

void pack_panels(const chain_operand& from, std::size_t first_line, std::size_t count,
                 std::size_t depth, std::size_t width, float* to) {
  if (!from.k_contiguous) {
    copy_lines(from.data + first_line, from.stride, count, depth, width, to);
    return;
  }
  for (std::size_t line = 0; line < count; line += width) {
    transpose_lines(from.data + (first_line + line) * from.stride, from.stride,
                    std::min(width, count - line), depth, width, to + line * depth);
  }
}

}  // namespace troupe::compute::cpu
