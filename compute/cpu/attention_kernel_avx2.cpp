// 6x16 tiles: twelve sums, two vectors of the right factor and a broadcast fill the sixteen
// registers.
#include <immintrin.h>

#include "compute/cpu/attention_kernel.hpp"
#include "compute/cpu/attention_kernel_template.hpp"

namespace troupe::compute::cpu {
namespace {

struct vector {
  using type = __m256;
  typedef std::uint32_t bits __attribute__((vector_size(32)));
  static constexpr std::size_t lanes = 8;
  static type broadcast(float value) { return _mm256_set1_ps(value); }
  static type load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, type value) { _mm256_storeu_ps(to, value); }
  static type fma(type a, type b, type c) { return _mm256_fmadd_ps(a, b, c); }
  static type maximum(type a, type b) { return _mm256_max_ps(a, b); }
  static type minimum(type a, type b) { return _mm256_min_ps(a, b); }
  // Lanes from n on become +0.
  static type first(std::size_t n, type value) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i kept = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), index);
    return _mm256_and_ps(value, _mm256_castsi256_ps(kept));
  }
  static type load_sums(const float* sums) { return load(sums); }
  static void store_sums(float* to, type sums) { store(to, sums); }
  static type add_to_sums(type sums, type e) { return _mm256_add_ps(sums, e); }
};

constexpr attention_kernel kernel = make_attention_kernel<vector, 6>();

}  // namespace

const attention_kernel& avx2_attention_kernel() { return kernel; }

}  // namespace troupe::compute::cpu
