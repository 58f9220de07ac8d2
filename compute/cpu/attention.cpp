// Forward attention. A tile is a block of queries of one head; key blocks are the outer loop in it,
// so that each is packed once and serves all queries, a few at a time: their strip of 64 scores
// each stays in the first cache from its product through the exponentials to its product with the
// values.
#include "compute/cpu/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compute/cpu/attention_dropout.hpp"
#include "compute/cpu/attention_kernel.hpp"
#include "compute/cpu/attention_panels.hpp"
#include "compute/cpu/attention_scratch.hpp"
#include "compute/cpu/instruction_set.hpp"
#include "compute/cpu/vector_math.hpp"

namespace troupe::compute::cpu {
namespace {

using panels::round_up;
using panels::vec8;

class forward_tile {
 public:
  forward_tile(const attention_args& args, const attention_shape& shape, std::size_t query_block)
      : shape_(shape),
        qkv_(args.qkv.host<float>().data()),
        out_(args.out.host<float>().data()),
        lse_(args.lse.host<float>().data()),
        kernel_(attention_kernel_for(shape.head_dim)),
        width_(kernel_.width),
        strip_(kernel_.rows),
        scale_(shape.scale()),
        dropout_(args.dropout),
        depth_(shape.head_dim),
        room_(round_up(query_block, strip_)) {
    const std::size_t padded = round_up(depth_, width_);
    const auto floats = attention_scratch::padded;
    const std::size_t panel_floats = room_ * padded;
    auto& memory = attention_scratch::of_this_thread(
        2 * floats(panel_floats) + floats(key_block * depth_) + floats(key_block * padded) +
        floats(room_ * 8) + floats(room_ + 8) + floats(strip_ * key_block));
    queries_ = memory.take(panel_floats);
    sums_ = memory.take(panel_floats);
    keys_ = memory.take(key_block * depth_);
    values_ = memory.take(key_block * padded);
    lanes_ = memory.take(room_ * 8);
    maxima_ = memory.take(room_ + 8);
    scores_ = memory.take(strip_ * key_block);
  }

  // Queries first ... last - 1 of a head.
  void compute(std::size_t sequence, std::size_t head, std::size_t first, std::size_t last) {
    sequence_ = sequence;
    head_ = head;
    first_ = first;
    const std::size_t stride = shape_.qkv_stride();
    const std::size_t kv_head = head / shape_.group();
    const std::size_t rows = last - first;
    const std::size_t padded_rows = round_up(rows, strip_);
    panels::pack_panels(width_, qkv_ + shape_.query_at(sequence, head) + first * stride, stride,
                        rows, depth_, padded_rows, queries_, room_);
    std::fill_n(sums_, room_ * round_up(depth_, width_), 0.0f);
    std::fill_n(lanes_, padded_rows * 8, 0.0f);
    std::fill_n(maxima_, padded_rows + 8, -std::numeric_limits<float>::infinity());
    for (std::size_t key = 0; key < last; key += key_block) {
      const std::size_t keys = std::min(key_block, last - key);
      panels::pack_transposed(width_, qkv_ + shape_.key_at(sequence, kv_head) + key * stride,
                              stride, keys, depth_, keys_);
      panels::pack_panels(width_, qkv_ + shape_.value_at(sequence, kv_head) + key * stride, stride,
                          keys, depth_, keys, values_, key_block);
      const std::size_t begin = key > first ? (key - first) / strip_ * strip_ : 0;
      for (std::size_t row = begin; row < rows; row += strip_) add_keys(row, key, keys);
    }
    finish(rows);
  }

 private:
  // One strip of queries meets one block of keys.
  void add_keys(std::size_t row, std::size_t key, std::size_t keys) {
    // Row r of the strip sees the block's keys below diagonal + r.
    const std::ptrdiff_t diagonal =
        static_cast<std::ptrdiff_t>(first_ + row + 1) - static_cast<std::ptrdiff_t>(key);
    const std::size_t visible = static_cast<std::size_t>(std::min<std::ptrdiff_t>(
        diagonal + static_cast<std::ptrdiff_t>(strip_) - 1, static_cast<std::ptrdiff_t>(keys)));
    for (std::size_t c = 0; c < visible; c += width_) {
      kernel_.scores(queries_ + row * width_, room_ * width_, keys_ + c * depth_, depth_,
                     scores_ + c);
    }
    alignas(32) float factors[8];
    if (diagonal >= static_cast<std::ptrdiff_t>(key_block) && keys == key_block) {
      exponentials<false>(row, key, diagonal, keys, factors);
    } else {
      exponentials<true>(row, key, diagonal, keys, factors);
    }
    for (std::size_t p = 0; p * width_ < depth_; ++p) {
      kernel_.over_keys_rescaled(scores_, values_ + p * key_block * width_, diagonal, keys,
                                 sums_ + (p * room_ + row) * width_, width_, factors);
    }
  }

  // Scores become probabilities, the running maxima and sums move on; factors: what to rescale by.
  template <bool Masked>
  void exponentials(std::size_t row, std::size_t key, std::ptrdiff_t diagonal, std::size_t keys,
                    float* factors) {
    const panels::tag8 d;
    std::size_t count[attention_kernel::most_rows];
    alignas(32) float maxima[8] = {};
    for (std::size_t r = 0; r < strip_; ++r) {
      count[r] = Masked ? static_cast<std::size_t>(
                              std::clamp<std::ptrdiff_t>(diagonal + static_cast<std::ptrdiff_t>(r),
                                                         0, static_cast<std::ptrdiff_t>(keys)))
                        : key_block;
      maxima[r] = maximum<Masked>(scores_ + r * key_block, count[r]);
    }
    const vec8 scale = hn::Set(d, scale_);
    const vec8 old = hn::LoadU(d, maxima_ + row);
    const vec8 now = hn::Max(old, hn::Load(d, maxima));
    if (key == 0) {
      hn::Store(hn::Set(d, 1.0f), d, factors);
    } else {
      hn::Store(hn::IfThenElse(hn::Eq(old, now), hn::Set(d, 1.0f),
                               exp(d, hn::Mul(hn::Sub(old, now), scale))),
                d, factors);
    }
    hn::Store(now, d, maxima);
    std::copy_n(maxima, strip_, maxima_ + row);
    for (std::size_t r = 0; r < strip_; ++r) {
      float* const p = scores_ + r * key_block;
      float* const sums = lanes_ + (row + r) * 8;
      hn::Store(hn::Mul(hn::Load(d, sums), hn::Set(d, factors[r])), d, sums);
      kernel_.exponentials(p, count[r], maxima[r], scale_, sums);
      if (dropout_.active() && count[r] != 0) drop(p, first_ + row + r, key, count[r]);
    }
  }

  template <bool Masked>
  float maximum(const float* scores, std::size_t count) const {
    const panels::tag8 d;
    const vec8 lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
    vec8 top = lowest;
    for (std::size_t c = 0; c < count; c += 8) {
      vec8 s = hn::Load(d, scores + c);
      if (Masked) s = hn::IfThenElse(panels::lanes_below(count - c), s, lowest);
      top = hn::Max(top, s);
    }
    return panels::fold_max(top);
  }

  void drop(float* p, std::size_t query, std::size_t key, std::size_t count) {
    const panels::tag8 d;
    const std::uint64_t T = shape_.seq_len;
    dropout_.draw(sequence_, (head_ * T + query) * T + key, count);
    for (std::size_t c = 0; c < count; c += 8) {
      hn::Store(dropout_.apply(c, hn::Load(d, p + c)), d, p + c);
    }
  }

  void finish(std::size_t rows) {
    const panels::tag8 d;
    float* const lse = lse_ + shape_.lse_at(sequence_, head_) + first_;
    float* const out = out_ + shape_.out_at(sequence_, head_) + first_ * shape_.out_stride();
    for (std::size_t row = 0; row < rows; row += 8) {
      const std::size_t n = std::min<std::size_t>(8, rows - row);
      alignas(32) float x[8] = {1, 1, 1, 1, 1, 1, 1, 1};
      for (std::size_t r = 0; r < n; ++r) {
        x[r] = panels::fold_sum(hn::Load(d, lanes_ + (row + r) * 8));
      }
      const vec8 sums = hn::Load(d, x);
      hn::Store(hn::MulAdd(hn::LoadU(d, maxima_ + row), hn::Set(d, scale_), log(d, sums)), d, x);
      std::copy_n(x, n, lse + row);
      hn::Store(hn::Div(hn::Set(d, 1.0f), sums), d, x);
      for (std::size_t r = 0; r < n; ++r) {
        panels::unpack_row(width_, sums_, room_, row + r, depth_, x[r],
                           out + (row + r) * shape_.out_stride());
      }
    }
  }

  const attention_shape shape_;
  const float* qkv_;
  float* out_;
  float* lse_;
  const attention_kernel& kernel_;
  std::size_t width_, strip_;  // a panel's columns, a tile's rows
  float scale_;
  attention_dropout dropout_;
  std::size_t depth_;
  std::size_t room_;  // rows that a panel has room for
  std::size_t sequence_ = 0, head_ = 0, first_ = 0;
  float *queries_, *sums_, *keys_, *values_;
  float *lanes_, *maxima_, *scores_;
};

}  // namespace

const attention_kernel& attention_kernel_for(std::size_t head_dim) {
  const auto set = active_instruction_set();
  // Half of a wide panel would be zeros for the smallest heads.
  const bool wide = set == instruction_set::avx512 && head_dim > avx2_attention_kernel().width;
  return wide ? avx512_attention_kernel() : avx2_attention_kernel();
}

float attention_shape::scale() const { return 1.0f / std::sqrt(static_cast<float>(head_dim)); }

void attention_shape::check(const dropout_mask& dropout) const {
  ensure(head_dim >= 1 && head_dim <= 256, "attention: head_dim must be 1 to 256");
  ensure(kv_heads >= 1 && heads >= 1 && heads % kv_heads == 0,
         "attention: kv_heads must divide heads");
  ensure(dropout.probability >= 0 && dropout.probability < 1,
         "attention: a dropout probability must be at least 0 and below 1");
}

void attention(thread_pool& pool, const attention_args& args, std::size_t query_block) {
  const attention_shape shape{args.sequences, args.seq_len, args.heads, args.kv_heads,
                              args.head_dim};
  shape.check(args.dropout);
  ensure(query_block >= 1, "attention: a block of queries cannot be empty");
  ensure(args.qkv.size == shape.rows() * shape.qkv_stride(), "attention: qkv has the wrong size");
  ensure(args.out.size == shape.rows() * shape.out_stride(), "attention: out has the wrong size");
  ensure(args.lse.size == shape.rows() * shape.heads, "attention: lse has the wrong size");
  query_block = std::min(query_block, std::max<std::size_t>(shape.seq_len, 1));
  const std::size_t blocks = (shape.seq_len + query_block - 1) / query_block;
  const std::size_t heads = shape.sequences * shape.heads;
  pool.parallel_for(heads * blocks, [&](std::size_t tile, int) {
    // The last queries see the most keys: they come first, so that no thread ends with a long tile.
    const std::size_t block = blocks - 1 - tile / heads;
    const std::size_t head = tile % heads;
    forward_tile work(args, shape, query_block);
    work.compute(head / shape.heads, head % shape.heads, block * query_block,
                 std::min(shape.seq_len, (block + 1) * query_block));
  });
}

void attention(thread_pool& pool, const attention_args& args) {
  // Large blocks pack keys less often; small ones give every thread something to do.
  std::size_t block = 384;
  const auto tiles_of = [&](std::size_t size) {
    return args.sequences * args.heads * ((args.seq_len + size - 1) / size);
  };
  while (block > 48 && tiles_of(block) < 3 * static_cast<std::size_t>(pool.size())) block /= 2;
  attention(pool, args, block);
}

}  // namespace troupe::compute::cpu
