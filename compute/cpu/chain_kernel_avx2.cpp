// 4x24 tiles: twelve sums, three vectors of B and one broadcast fill the sixteen registers.
#include <immintrin.h>

#include "compute/cpu/chain_kernel.hpp"
#include "compute/cpu/chain_kernel_template.hpp"

namespace troupe::compute::cpu {
namespace {

struct vector {
  using type = __m256;
  static constexpr std::size_t lanes = 8;
  static type broadcast(float value) { return _mm256_set1_ps(value); }
  static type load(const float* from) { return _mm256_load_ps(from); }
  static type load_anywhere(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, type value) { _mm256_store_ps(to, value); }
  static type fma(type a, type b, type c) { return _mm256_fmadd_ps(a, b, c); }
};

constexpr std::size_t depth = 256;  // 24 KiB of B, for first caches of 32 KiB
constexpr chain_kernel kernel = make_chain_kernel<vector, 4>(depth);

}  // namespace

const chain_kernel& avx2_chain_kernel() { return kernel; }

}  // namespace troupe::compute::cpu
