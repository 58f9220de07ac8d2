// The innermost parts of attention for one instruction set: products of small tiles held in
// registers, and the exponentials of a row of scores.
//
// Problem: a block of scores is 64 keys wide and a head perhaps 64 elements deep; a general matrix
// product costs more to call than it computes there, and would compute the causal triangle whole.
// Idea: three products with one chain of fused multiply-adds per element in a fixed order, over
// packed panels. What lies beyond the diagonal is left out of a chain, not multiplied by zero: -0 +
// 0 is +0 and 0 * inf is NaN, and a future token must not be able to change a bit. So rows, columns
// and registers cannot show in the bits.
//
// A panel form holds `width` columns of a matrix at a time, row after row: [columns /
// width][rows][width]. As the right factor it gives vectors, as the left one scalars at constant
// distances. Columns are padded with zeros, the summed dimension never is.
//
// Each instruction set has its own source file with its own flags, which includes nothing but
// intrinsics and our own templates, for the reason given in chain_kernel.hpp.
#pragma once

#include <cstddef>

namespace troupe::compute::cpu {

inline constexpr std::size_t key_block = 64;  // enters the bits: fixed within a numerics version

struct attention_kernel {
  static constexpr std::size_t most_rows = 8;

  std::size_t rows;   // of a tile
  std::size_t width;  // its columns, and those of a panel

  // out[r][c] = chain over d < depth of a[r][d] b[d][c]. a: the first row in panel form, panels
  // `a_panel` floats apart; b: [depth][width]; out: rows 64 apart.
  void (*scores)(const float* a, std::size_t a_panel, const float* b, std::size_t depth,
                 float* out);

  // out[r][c] continues by the chain over keys of a[r][key] b[key][c]. a: rows 64 apart; b:
  // [keys][width]. Row r takes the keys below both diagonal + r and `keys`. The chain starts at +0,
  // at the old values, or at the old values times factor[r].
  using over_keys_function = void (*)(const float* a, const float* b, std::ptrdiff_t diagonal,
                                      std::size_t keys, float* out, std::size_t out_stride,
                                      const float* factor);
  over_keys_function over_keys_from_zero, over_keys, over_keys_rescaled;

  // out[r][c] continues by the chain over queries of a[query][r] b[query][c]. a: rows 64 apart; b:
  // [queries][width]; out: rows `width` apart. Row r takes the queries at or after first + r.
  void (*over_queries)(const float* a, const float* b, std::ptrdiff_t first, std::size_t queries,
                       float* out);

  // p[c] = exp((p[c] - top) scale) for c < count, added to sums[c mod 8] for rising c. What
  // follows, up to a whole vector, becomes +0.
  void (*exponentials)(float* p, std::size_t count, float top, float scale, float* sums);

  // p[c] = exp(fma(p[c], scale, -lse)) and g[c] = (p[c] (g[c] - product)) scale for c < count, and
  // for what follows up to a whole vector.
  void (*gradients)(float* p, float* g, std::size_t count, float scale, float lse, float product);
};

const attention_kernel& avx2_attention_kernel();
const attention_kernel& avx512_attention_kernel();

// The faster one on this processor for heads of this size; instruction_set.hpp has the choice of a
// test.
const attention_kernel& attention_kernel_for(std::size_t head_dim);

}  // namespace troupe::compute::cpu
