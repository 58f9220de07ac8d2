// Operands of a matrix product, copied into the order in which the kernel reads them.
//
// An operand is a set of lines (rows of A, columns of B) that each run over k. `pack_panels` copies
// `count` lines in panels of `width`: line i at step k goes to to[(i / width * depth + k) * width +
// i % width]. Slots of the last panel that belong to no line keep what they held: their products
// are never looked at. k is never padded: that would add fused multiply-adds to the chain.
#pragma once

#include <immintrin.h>

#include <cstddef>

namespace troupe::compute::cpu {

struct chain_operand {
  const float* data;
  std::size_t stride;
  bool k_contiguous;  // element (line, k) is data[line * stride + k], else data[k * stride + line]
};

// `width` is 4, 8, 24 or 48.
void pack_panels(const chain_operand& from, std::size_t first_line, std::size_t count,
                 std::size_t depth, std::size_t width, float* to);

// A short row; a call into the library costs as much as the copy.
inline void copy_floats(const float* from, std::size_t count, float* to) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(to + i, _mm256_loadu_ps(from + i));
  for (; i < count; ++i) to[i] = from[i];
}

}  // namespace troupe::compute::cpu
