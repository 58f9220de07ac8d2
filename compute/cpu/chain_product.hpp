// C[m, n] = A[m, k] * B[k, n], every element one chain of fused multiply-adds in rising k.
//
// The usual blocked product (pack B in panels, pack A in tiles, a register tile inside) with two
// differences that the contract asks for. k is cut into blocks only so that a panel of B stays in
// the first cache: the next block loads the sums back and goes on, it never adds a partial sum. And
// threads share tiles of C, never k. A library product does neither, which is why none is used
// (docs/numerics.md).
//
// Sums live in a scratch tile until their chain is complete. So the kernel never meets an edge of
// C, `finish` may read what it is going to overwrite, and what follows the product (bias, residual,
// activation) happens while the tile is in the first caches. B is packed once a call and shared;
// scratch memory belongs to the threads and is kept between calls.
#pragma once

#include <cstddef>
#include <functional>

#include "compute/cpu/pack.hpp"
#include "compute/cpu/thread_pool.hpp"

namespace troupe::compute::cpu {

// Finished chains: element (row + i, column + j) is values[i * stride + j]. A row of values is
// writable and aligned to 32 bytes up to the next multiple of 8 columns, whatever `columns` is.
struct chain_tile_values {
  float* values;
  std::size_t stride;
  std::size_t row, rows;
  std::size_t column, columns;
};

struct chain_product {
  std::size_t m, n, k;
  chain_operand a;                      // lines are rows of C
  chain_operand b;                      // lines are columns of C
  const float* start = nullptr;         // [m, n] values that the chains start at; null: +0
  const float* finish_reads = nullptr;  // [m, n] values that `finish` reads, fetched ahead
  // Called once for every element, by any thread.
  std::function<void(const chain_tile_values&)> finish{};
};

void multiply(thread_pool& pool, const chain_product& product);

}  // namespace troupe::compute::cpu
