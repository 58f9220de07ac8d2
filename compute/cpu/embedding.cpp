// Embedding look-up, and the gradient of the tables. The gradient walks over the tokens in order
// and is cut by columns: each element of a table has its chain, however often a token occurs.

#include <algorithm>
#include <cstdint>

#include "compute/cpu/dropout_words.hpp"
#include "compute/cpu/kernels.hpp"
#include "compute/cpu/tiling.hpp"

namespace troupe::compute::cpu {
namespace {

std::size_t checked(std::int32_t token, std::size_t vocabulary) {
  ensure(token >= 0 && static_cast<std::size_t>(token) < vocabulary,
         "a token id lies outside of the vocabulary");
  return static_cast<std::size_t>(token);
}

}  // namespace

void embedding(thread_pool& pool, const embedding_args& a) {
  ensure(a.seq_len > 0, "embedding: sequences need a length");
  const std::int32_t* tokens = elements<std::int32_t>(a.tokens, a.rows);
  const float* table = elements<float>(a.table, a.vocabulary * a.width);
  const float* positions =
      optional_elements<float>(a.positions, std::min(a.rows, a.seq_len) * a.width);
  float* out = elements<float>(a.out, a.rows * a.width);
  const dropout_decider decider(a.dropout);
  for_rows(pool, a.rows, a.width, [&](std::size_t row) {
    const float* from = table + checked(tokens[row], a.vocabulary) * a.width;
    const std::size_t place = row % a.seq_len * a.width;
    float* to = out + row * a.width;
    decider.for_row(row / a.seq_len, place, a.width,
                    [&](std::size_t c, auto which, const auto& drop) {
                      auto v = load(from + c, which);
                      if (positions) v = v + load(positions + place + c, which);
                      store(drop(v), to + c, which);
                    });
  });
}

void embedding_backward(thread_pool& pool, const embedding_backward_args& a) {
  ensure(a.seq_len > 0, "embedding: sequences need a length");
  const std::int32_t* tokens = elements<std::int32_t>(a.tokens, a.rows);
  const float* dout = elements<float>(a.dout, a.rows * a.width);
  float* dtable = elements<float>(a.dtable, a.vocabulary * a.width);
  float* dpositions = optional_elements<float>(a.dpositions, std::min(a.rows, a.seq_len) * a.width);
  for_columns(pool, a.width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = 0; row < a.rows; ++row) {
      const float* from = dout + row * a.width;
      float* to = dtable + checked(tokens[row], a.vocabulary) * a.width;
      float* place = dpositions ? dpositions + row % a.seq_len * a.width : nullptr;
      for_lanes(begin, end, [&](std::size_t c, auto which) {
        const auto gradient = load(from + c, which);
        store(load(to + c, which) + gradient, to + c, which);
        if (place) store(load(place + c, which) + gradient, place + c, which);
      });
    }
  });
}

}  // namespace troupe::compute::cpu
