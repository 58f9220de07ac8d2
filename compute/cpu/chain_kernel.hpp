// The innermost part of a matrix product: one tile of C, held in registers while k runs.
//
// Every element is one chain c = fma(a[k], b[k], c) in rising k, so the tile's shape, the register
// width and the instruction set cannot show in the bits; only speed differs. Each instruction set
// has its own source file, compiled with its own flags. Those files include nothing but this
// header, the template and the intrinsics: an inline function of a library would otherwise be
// emitted with wide instructions, and the linker might keep that copy for the whole program.
//
// Tiles are wide and low (8x48, 4x24) rather than the usual 14x32 and 6x16: three vectors of B are
// used by every broadcast of A, which is as fast, and the usual model widths divide by 48 without
// waste. Packed operands are read in order: A as [k][rows], B as [k][columns].
#pragma once

#include <cstddef>

namespace troupe::compute::cpu {

struct chain_kernel {
  static constexpr std::size_t most_rows = 8;
  static constexpr std::size_t most_vectors = 3;

  // c[i][j] = chain over k < depth of a[k][i] * b[k][j], from start[i][j], or from +0 without
  // `start`. a, b and c have the full tile's stride; only the function's own rows and vectors are
  // touched. b and c are aligned to the vector. Memory from `soon` on, `soon_step` floats for every
  // k, is fetched into the second cache: spread over the loop, it delays nothing.
  using product_function = void (*)(std::size_t depth, const float* a, const float* b,
                                    const float* start, std::size_t start_stride, float* c,
                                    const float* soon, std::size_t soon_step);

  std::size_t rows;     // of a full tile
  std::size_t columns;  // of a full tile: `vectors` times `lanes`
  std::size_t lanes;
  std::size_t
      depth;  // longest run of k in one call for which a panel of B stays in the first cache
  product_function product[most_rows][most_vectors];  // [rows - 1][vectors - 1]

  // `iterations` times `flops_per_iteration` operations on independent accumulators, nothing else.
  float (*fma_loop)(std::size_t iterations, float factor, float summand);
  std::size_t flops_per_iteration;
};

const chain_kernel& avx2_chain_kernel();
const chain_kernel& avx512_chain_kernel();

}  // namespace troupe::compute::cpu
