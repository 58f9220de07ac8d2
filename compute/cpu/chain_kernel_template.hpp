// The body of chain_kernel.hpp for any register type. `Vector` gives the type, its lanes and five
// operations. In an unnamed namespace on purpose: every including file is compiled with other flags
// and must get its own copy. Arrays with constant bounds and unrolled loops become registers.
#pragma once

#include <cstddef>

#include "compute/cpu/chain_kernel.hpp"

namespace troupe::compute::cpu {
namespace {

template <class Vector, int FullRows, int FullVectors, int Rows, int Vectors>
void chain_tile(std::size_t depth, const float* a, const float* b, const float* start,
                std::size_t start_stride, float* c, const float* soon, std::size_t soon_step) {
  constexpr std::size_t lanes = Vector::lanes;
  constexpr std::size_t stride = FullVectors * lanes;
  typename Vector::type sum[Rows][Vectors];
  if (start == nullptr) {
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
      for (int j = 0; j < Vectors; ++j) sum[i][j] = Vector::broadcast(0.0f);
    }
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
      for (int j = 0; j < Vectors; ++j) {
        sum[i][j] = Vector::load_anywhere(start + i * start_stride + j * lanes);
      }
    }
  }
#pragma GCC unroll 2
  for (std::size_t k = 0; k < depth; ++k) {
    __builtin_prefetch(soon, 0, 2);
    soon += soon_step;
    typename Vector::type right[Vectors];
#pragma GCC unroll 3
    for (int j = 0; j < Vectors; ++j) right[j] = Vector::load(b + k * stride + j * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const typename Vector::type left = Vector::broadcast(a[k * FullRows + i]);
#pragma GCC unroll 3
      for (int j = 0; j < Vectors; ++j) sum[i][j] = Vector::fma(left, right[j], sum[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < Vectors; ++j) Vector::store(c + i * stride + j * lanes, sum[i][j]);
  }
}

constexpr int loop_accumulators = 12;  // latency of 4 times two units, and some more

template <class Vector>
float fma_loop(std::size_t iterations, float factor, float summand) {
  const typename Vector::type f = Vector::broadcast(factor);
  const typename Vector::type s = Vector::broadcast(summand);
  typename Vector::type sum[loop_accumulators];
#pragma GCC unroll 12
  for (int j = 0; j < loop_accumulators; ++j) sum[j] = Vector::broadcast(static_cast<float>(j));
  for (std::size_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < loop_accumulators; ++j) sum[j] = Vector::fma(sum[j], f, s);
  }
  alignas(64) float lanes[loop_accumulators][Vector::lanes];
  float total = 0;
#pragma GCC unroll 12
  for (int j = 0; j < loop_accumulators; ++j) Vector::store(lanes[j], sum[j]);
  for (int j = 0; j < loop_accumulators; ++j) {
    for (std::size_t l = 0; l < Vector::lanes; ++l) total += lanes[j][l];
  }
  return total;
}

// Fills the table for tiles of up to `Rows` rows.
template <class Vector, int Rows, int Vectors, int Row = 1>
constexpr void fill_products(chain_kernel& kernel) {
  kernel.product[Row - 1][0] = chain_tile<Vector, Rows, Vectors, Row, 1>;
  kernel.product[Row - 1][1] = chain_tile<Vector, Rows, Vectors, Row, 2>;
  kernel.product[Row - 1][2] = chain_tile<Vector, Rows, Vectors, Row, 3>;
  if constexpr (Row < Rows) fill_products<Vector, Rows, Vectors, Row + 1>(kernel);
}

template <class Vector, int Rows>
constexpr chain_kernel make_chain_kernel(std::size_t depth) {
  constexpr int vectors = static_cast<int>(chain_kernel::most_vectors);
  static_assert(Rows <= static_cast<int>(chain_kernel::most_rows));
  chain_kernel kernel{};
  kernel.rows = Rows;
  kernel.columns = vectors * Vector::lanes;
  kernel.lanes = Vector::lanes;
  kernel.depth = depth;
  kernel.fma_loop = fma_loop<Vector>;
  kernel.flops_per_iteration = loop_accumulators * Vector::lanes * 2;
  fill_products<Vector, Rows, vectors>(kernel);
  return kernel;
}

}  // namespace
}  // namespace troupe::compute::cpu
