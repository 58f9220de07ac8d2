// 8x48 tiles: 24 sums, three vectors of B and a broadcast. Compiled with AVX-512 flags; called only
// on processors that have it (instruction_set.hpp).
#include <immintrin.h>

#include "compute/cpu/chain_kernel.hpp"
#include "compute/cpu/chain_kernel_template.hpp"

namespace troupe::compute::cpu {
namespace {

struct vector {
  using type = __m512;
  static constexpr std::size_t lanes = 16;
  static type broadcast(float value) { return _mm512_set1_ps(value); }
  static type load(const float* from) { return _mm512_load_ps(from); }
  static type load_anywhere(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, type value) { _mm512_store_ps(to, value); }
  static type fma(type a, type b, type c) { return _mm512_fmadd_ps(a, b, c); }
};

constexpr std::size_t depth =
    384;  // B passes through the second cache, which keeps up with eight rows
constexpr chain_kernel kernel = make_chain_kernel<vector, 8>(depth);

}  // namespace

const chain_kernel& avx512_chain_kernel() { return kernel; }

}  // namespace troupe::compute::cpu
