// Backward attention. A tile is one key/value head of one sequence: dk and dv are chains over all
// queries of all heads of its group, so nobody else may add to them, and nothing has to be added up
// afterwards. Key blocks are the outer loop: k and v are packed once a block, dk and dv stay in the
// second cache, and only dq goes through memory. Probabilities are computed again from the stored
// log-sum-exp, and the row products D_i again per block (2 % of the work) rather than stored for T
// queries.
#include <algorithm>

#include "compute/cpu/attention.hpp"
#include "compute/cpu/attention_dropout.hpp"
#include "compute/cpu/attention_kernel.hpp"
#include "compute/cpu/attention_panels.hpp"
#include "compute/cpu/attention_scratch.hpp"
#include "compute/cpu/vector_math.hpp"

namespace troupe::compute::cpu {
namespace {

using panels::round_up;
using panels::vec8;

class backward_tile {
 public:
  backward_tile(const attention_backward_args& args, const attention_shape& shape,
                std::size_t query_block)
      : shape_(shape),
        qkv_(args.qkv.host<float>().data()),
        out_(args.out.host<float>().data()),
        lse_(args.lse.host<float>().data()),
        dout_(args.dout.host<float>().data()),
        dqkv_(args.dqkv.host<float>().data()),
        kernel_(attention_kernel_for(shape.head_dim)),
        width_(kernel_.width),
        strip_(kernel_.rows),
        key_room_(round_up(key_block, strip_)),
        scale_(shape.scale()),
        dropout_(args.dropout),
        depth_(shape.head_dim),
        query_block_(query_block),
        room_(round_up(query_block, strip_)) {
    const std::size_t padded = round_up(depth_, width_);
    const auto floats = attention_scratch::padded;
    const std::size_t grid = room_ * key_block + 8;  // a strip of keys may read past the last row
    auto& memory = attention_scratch::of_this_thread(
        2 * floats(key_block * depth_) + floats(key_block * padded) +
        2 * floats(key_room_ * padded) + 2 * floats(room_ * padded) + 2 * floats(grid) +
        2 * floats(room_) + floats(strip_ * width_));
    keys_transposed_ = memory.take(key_block * depth_);
    values_transposed_ = memory.take(key_block * depth_);
    keys_ = memory.take(key_block * padded);
    dkeys_ = memory.take(key_room_ * padded);
    dvalues_ = memory.take(key_room_ * padded);
    queries_ = memory.take(room_ * padded);
    douts_ = memory.take(room_ * padded);
    probabilities_ = memory.take(grid);
    dscores_ = memory.take(grid);
    row_lse_ = memory.take(room_);
    row_products_ = memory.take(room_);
    edge_ = memory.take(strip_ * width_);
  }

  void compute(std::size_t sequence, std::size_t kv_head) {
    sequence_ = sequence;
    const std::size_t T = shape_.seq_len;
    const std::size_t stride = shape_.qkv_stride();
    for (std::size_t key = 0; key < T; key += key_block) {
      key_ = key;
      count_ = std::min(key_block, T - key);
      const float* const k = qkv_ + shape_.key_at(sequence, kv_head) + key * stride;
      const float* const v = qkv_ + shape_.value_at(sequence, kv_head) + key * stride;
      panels::pack_transposed(width_, k, stride, count_, depth_, keys_transposed_);
      panels::pack_transposed(width_, v, stride, count_, depth_, values_transposed_);
      panels::pack_panels(width_, k, stride, count_, depth_, count_, keys_, key_block);
      std::fill_n(dkeys_, key_room_ * round_up(depth_, width_), 0.0f);
      std::fill_n(dvalues_, key_room_ * round_up(depth_, width_), 0.0f);
      for (std::size_t g = 0; g < shape_.group(); ++g) {
        for (std::size_t query = key; query < T; query += query_block_) {
          add_queries(kv_head * shape_.group() + g, query, std::min(query_block_, T - query));
        }
      }
      float* const dk = dqkv_ + shape_.key_at(sequence, kv_head) + key * stride;
      float* const dv = dqkv_ + shape_.value_at(sequence, kv_head) + key * stride;
      for (std::size_t r = 0; r < count_; ++r) {
        panels::unpack_row(width_, dkeys_, key_room_, r, depth_, 1.0f, dk + r * stride);
        panels::unpack_row(width_, dvalues_, key_room_, r, depth_, 1.0f, dv + r * stride);
      }
    }
  }

 private:
  // The block of keys meets `rows` queries of one head.
  void add_queries(std::size_t head, std::size_t query, std::size_t rows) {
    head_ = head;
    query_ = query;
    const std::size_t padded_rows = round_up(rows, strip_);
    const std::size_t out = shape_.out_at(sequence_, head) + query * shape_.out_stride();
    panels::pack_panels(width_,
                        qkv_ + shape_.query_at(sequence_, head) + query * shape_.qkv_stride(),
                        shape_.qkv_stride(), rows, depth_, padded_rows, queries_, room_);
    panels::pack_panels(width_, dout_ + out, shape_.out_stride(), rows, depth_, padded_rows, douts_,
                        room_);
    std::copy_n(lse_ + shape_.lse_at(sequence_, head) + query, rows, row_lse_);
    std::fill_n(row_lse_ + rows, padded_rows - rows, 0.0f);
    std::fill_n(row_products_ + rows, padded_rows - rows, 0.0f);
    for (std::size_t r = 0; r < rows; ++r) {
      row_products_[r] =
          row_product(dout_ + out + r * shape_.out_stride(), out_ + out + r * shape_.out_stride());
    }
    for (std::size_t row = 0; row < rows; row += strip_) {
      score(row);
      add_to_queries(row, std::min(strip_, rows - row));
    }
    // Key r of the block is seen by the rows at or after r - offset.
    const std::ptrdiff_t offset =
        static_cast<std::ptrdiff_t>(query) - static_cast<std::ptrdiff_t>(key_);
    for (std::size_t r = 0; r < count_; r += strip_) {
      const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(r) - offset;
      if (first >= static_cast<std::ptrdiff_t>(rows)) break;
      for (std::size_t p = 0; p * width_ < depth_; ++p) {
        kernel_.over_queries(probabilities_ + r, douts_ + p * room_ * width_, first, rows,
                             dvalues_ + (p * key_room_ + r) * width_);
        kernel_.over_queries(dscores_ + r, queries_ + p * room_ * width_, first, rows,
                             dkeys_ + (p * key_room_ + r) * width_);
      }
    }
  }

  float row_product(const float* a, const float* b) const {
    const panels::tag8 d;
    vec8 sum = hn::Zero(d);
    std::size_t c = 0;
    for (; c + 8 <= depth_; c += 8) sum = hn::MulAdd(hn::LoadU(d, a + c), hn::LoadU(d, b + c), sum);
    if (c < depth_) {
      alignas(32) float x[8] = {}, y[8] = {};
      std::copy_n(a + c, depth_ - c, x);
      std::copy_n(b + c, depth_ - c, y);
      sum = hn::IfThenElse(panels::lanes_below(depth_ - c),
                           hn::MulAdd(hn::Load(d, x), hn::Load(d, y), sum), sum);
    }
    return panels::fold_sum(sum);
  }

  std::ptrdiff_t diagonal(std::size_t row) const {
    return static_cast<std::ptrdiff_t>(query_ + row + 1) - static_cast<std::ptrdiff_t>(key_);
  }

  // Probabilities and gradients of the scores for one strip of queries. What lies beyond the
  // diagonal is left behind in the tiles and never read.
  void score(std::size_t row) {
    float* p = probabilities_ + row * key_block;
    float* ds = dscores_ + row * key_block;
    const std::size_t visible =
        std::min(count_, static_cast<std::size_t>(diagonal(row)) + strip_ - 1);
    for (std::size_t c = 0; c < visible; c += width_) {
      kernel_.scores(queries_ + row * width_, room_ * width_, keys_transposed_ + c * depth_, depth_,
                     p + c);
      kernel_.scores(douts_ + row * width_, room_ * width_, values_transposed_ + c * depth_, depth_,
                     ds + c);
    }
    for (std::size_t r = 0; r < strip_; ++r, p += key_block, ds += key_block) {
      if (dropout_.active()) {
        const std::uint64_t T = shape_.seq_len;
        dropout_.draw(sequence_, (head_ * T + query_ + row + r) * T + key_, visible);
        drop(ds, visible);
      }
      kernel_.gradients(p, ds, visible, scale_, row_lse_[row + r], row_products_[row + r]);
      if (dropout_.active()) drop(p, visible);
    }
  }

  void drop(float* values, std::size_t count) const {
    const panels::tag8 d;
    for (std::size_t c = 0; c < count; c += 8) {
      hn::Store(dropout_.apply(c, hn::Load(d, values + c)), d, values + c);
    }
  }

  void add_to_queries(std::size_t row, std::size_t rows) {
    const std::size_t stride = shape_.qkv_stride();
    float* const dq = dqkv_ + shape_.query_at(sequence_, head_) + (query_ + row) * stride;
    for (std::size_t c = 0; c < depth_; c += width_) {
      const std::size_t columns = std::min(width_, depth_ - c);
      if (rows == strip_ && columns == width_) {
        add_to_queries(row, c, dq + c, stride);
        continue;
      }
      for (std::size_t r = 0; r < rows; ++r) {
        std::copy_n(dq + r * stride + c, columns, edge_ + r * width_);
      }
      add_to_queries(row, c, edge_, width_);
      for (std::size_t r = 0; r < rows; ++r) {
        std::copy_n(edge_ + r * width_, columns, dq + r * stride + c);
      }
    }
  }

  void add_to_queries(std::size_t row, std::size_t column, float* dq, std::size_t stride) {
    const float* const ds = dscores_ + row * key_block;
    const float* const k = keys_ + column * key_block;
    if (key_ == 0) {
      kernel_.over_keys_from_zero(ds, k, diagonal(row), count_, dq, stride, nullptr);
    } else {
      kernel_.over_keys(ds, k, diagonal(row), count_, dq, stride, nullptr);
    }
  }

  const attention_shape shape_;
  const float *qkv_, *out_, *lse_, *dout_;
  float* dqkv_;
  const attention_kernel& kernel_;
  std::size_t width_, strip_;  // a panel's columns, a tile's rows
  std::size_t key_room_;       // rows that a panel of dk and dv has room for
  float scale_;
  attention_dropout dropout_;
  std::size_t depth_, query_block_;
  std::size_t room_;  // rows that a panel of queries has room for
  std::size_t sequence_ = 0, head_ = 0, query_ = 0, key_ = 0;
  std::size_t count_ = 0;  // keys in the block
  float *keys_transposed_, *values_transposed_, *keys_, *dkeys_, *dvalues_;
  float *queries_, *douts_, *probabilities_, *dscores_;
  float *row_lse_, *row_products_, *edge_;
};

}  // namespace

void attention_backward(thread_pool& pool, const attention_backward_args& args,
                        std::size_t query_block) {
  const attention_shape shape{args.sequences, args.seq_len, args.heads, args.kv_heads,
                              args.head_dim};
  shape.check(args.dropout);
  ensure(query_block >= 1, "attention_backward: a block of queries cannot be empty");
  const std::size_t qkv = shape.rows() * shape.qkv_stride();
  const std::size_t out = shape.rows() * shape.out_stride();
  ensure(args.qkv.size == qkv, "attention_backward: qkv has the wrong size");
  ensure(args.dqkv.size == qkv, "attention_backward: dqkv has the wrong size");
  ensure(args.out.size == out, "attention_backward: out has the wrong size");
  ensure(args.dout.size == out, "attention_backward: dout has the wrong size");
  ensure(args.lse.size == shape.rows() * shape.heads, "attention_backward: lse has the wrong size");
  const std::size_t block = std::min(query_block, std::max<std::size_t>(shape.seq_len, 1));
  pool.parallel_for(shape.sequences * shape.kv_heads, [&](std::size_t tile, int) {
    backward_tile(args, shape, block).compute(tile / shape.kv_heads, tile % shape.kv_heads);
  });
}

void attention_backward(thread_pool& pool, const attention_backward_args& args) {
  attention_backward(pool, args, 96);
}

}  // namespace troupe::compute::cpu
