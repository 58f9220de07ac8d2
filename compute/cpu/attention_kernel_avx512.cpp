// 8x32 tiles: sixteen sums already hide the latency, and eight rows divide the 64 keys of a block.
// Compiled with AVX-512 flags; called only on processors that have it (instruction_set.hpp).
#include <immintrin.h>

#include "compute/cpu/attention_kernel.hpp"
#include "compute/cpu/attention_kernel_template.hpp"

namespace troupe::compute::cpu {
namespace {

struct vector {
  using type = __m512;
  typedef std::uint32_t bits __attribute__((vector_size(64)));
  static constexpr std::size_t lanes = 16;
  static type broadcast(float value) { return _mm512_set1_ps(value); }
  static type load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, type value) { _mm512_storeu_ps(to, value); }
  static type fma(type a, type b, type c) { return _mm512_fmadd_ps(a, b, c); }
  // With a mask of ones because GCC 12 warns of an undefined value inside the plain forms.
  static type maximum(type a, type b) { return _mm512_maskz_max_ps(0xFFFF, a, b); }
  static type minimum(type a, type b) { return _mm512_maskz_min_ps(0xFFFF, a, b); }
  // Lanes from n on become +0.
  static type first(std::size_t n, type value) {
    return _mm512_maskz_mov_ps(static_cast<__mmask16>((1u << n) - 1), value);
  }
  // Eight sums whatever the register: the lower half of a vector comes before the upper one.
  static __m256 load_sums(const float* sums) { return _mm256_loadu_ps(sums); }
  static void store_sums(float* to, __m256 sums) { _mm256_storeu_ps(to, sums); }
  static __m256 add_to_sums(__m256 sums, type e) {
    return _mm256_add_ps(_mm256_add_ps(sums, _mm512_maskz_extractf32x8_ps(0xFF, e, 0)),
                         _mm512_maskz_extractf32x8_ps(0xFF, e, 1));
  }
};

constexpr attention_kernel kernel = make_attention_kernel<vector, 8>();

}  // namespace

const attention_kernel& avx512_attention_kernel() { return kernel; }

}  // namespace troupe::compute::cpu
