// Rotary position embedding, in place. A pair (a, b) = (x[j], x[j + D/2]) with the angle's cosine c
// and sine s becomes (fma(-b, s, a c), fma(a, s, b c)); rotating back takes -s. Each element has
// its own fixed roundings, so a scalar tail has the bits of the vector body.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "compute/cpu/kernels.hpp"

namespace troupe::compute::cpu {
namespace {

void rotate_head(float* low, float* high, const float* cosines, const float* sines,
                 std::size_t half, float sign) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<float, 8> d;
  std::size_t j = 0;
  for (; j + 8 <= half; j += 8) {
    const auto a = hn::LoadU(d, low + j), b = hn::LoadU(d, high + j);
    const auto c = hn::LoadU(d, cosines + j);
    const auto s = hn::Mul(hn::LoadU(d, sines + j), hn::Set(d, sign));
    hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, low + j);
    hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, high + j);
  }
  for (; j < half; ++j) {
    const float a = low[j], b = high[j], c = cosines[j], s = sines[j] * sign;
    low[j] = std::fma(-b, s, a * c);
    high[j] = std::fma(a, s, b * c);
  }
}

}  // namespace

void rotate(thread_pool& pool, const rotate_args& args) {
  const std::size_t half = args.head_dim / 2;
  ensure(args.head_dim >= 2 && args.head_dim % 2 == 0, "rotate: head_dim must be even");
  ensure(args.row_stride >= args.heads * args.head_dim, "rotate: the heads do not fit into a row");
  ensure(args.seq_len >= 1 && args.rows % args.seq_len == 0,
         "rotate: rows must be whole sequences");
  ensure(args.cosines.size == args.seq_len * half && args.sines.size == args.cosines.size,
         "rotate: a table of angles has the wrong size");
  ensure(args.rows == 0 ||
             args.x.size >= (args.rows - 1) * args.row_stride + args.heads * args.head_dim,
         "rotate: x is too small for its rows");
  float* const x = args.x.host<float>().data();
  const float* const cosines = args.cosines.host<float>().data();
  const float* const sines = args.sines.host<float>().data();
  const float sign = args.inverse ? -1.0f : 1.0f;
  constexpr std::size_t rows_per_tile = 64;
  pool.parallel_for((args.rows + rows_per_tile - 1) / rows_per_tile, [&](std::size_t tile, int) {
    const std::size_t end = std::min(args.rows, (tile + 1) * rows_per_tile);
    for (std::size_t row = tile * rows_per_tile; row < end; ++row) {
      const std::size_t angle = row % args.seq_len * half;
      for (std::size_t head = 0; head < args.heads; ++head) {
        float* const low = x + row * args.row_stride + head * args.head_dim;
        rotate_head(low, low + half, cosines + angle, sines + angle, half, sign);
      }
    }
  });
}

}  // namespace troupe::compute::cpu
