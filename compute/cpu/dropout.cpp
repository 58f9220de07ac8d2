#include "compute/cpu/dropout_words.hpp"
#include "compute/cpu/kernels.hpp"
#include "compute/cpu/tiling.hpp"

namespace troupe::compute::cpu {

void dropout(thread_pool& pool, const dropout_args& a) {
  ensure(a.seq_len > 0, "dropout: sequences need a length");
  const std::size_t size = a.rows * a.width;
  const float* x = elements<float>(a.x, size);
  const float* residual = optional_elements<float>(a.residual, size);
  float* out = elements<float>(a.out, size);
  const dropout_decider decider(a.dropout);
  for_rows(pool, a.rows, a.width, [&](std::size_t row) {
    const std::size_t start = row * a.width;
    decider.for_row(row / a.seq_len, row % a.seq_len * a.width, a.width,
                    [&](std::size_t c, auto which, const auto& drop) {
                      auto v = drop(load(x + start + c, which));
                      if (residual) v = load(residual + start + c, which) + v;
                      store(v, out + start + c, which);
                    });
  });
}

}  // namespace troupe::compute::cpu
