// The three products of a linear layer, as chains (chain_product.hpp), with what follows each of
// them done on the finished tile: bias, residual and activation are separate roundings in this
// order, and the tile's tail goes through the same vector code as its body.
//
// Long chains are taken in runs of k, each starting at what the last one left in the output: that
// is what the chain means, and packed operands stay in the caches however many tokens or words
// there are.

#include <algorithm>
#include <cstring>

#include "compute/cpu/chain_product.hpp"
#include "compute/cpu/kernels.hpp"
#include "compute/cpu/vector_math.hpp"

namespace troupe::compute::cpu {
namespace {

constexpr std::size_t lanes = 8;
constexpr std::size_t longest_run = 4096;           // of k; speed alone
constexpr std::size_t longest_gradient_run = 1024;  // of rows: both operands have to be repacked
constexpr std::size_t bias_vectors = 8;             // sums in registers
constexpr std::size_t bias_columns = bias_vectors * lanes;

const float* read(const_view v, std::size_t elements, const char* trouble) {
  ensure(v.host<float>().size() >= elements, trouble);
  return v.host<float>().data();
}
const float* read_if_any(const_view v, std::size_t elements, const char* trouble) {
  return v ? read(v, elements, trouble) : nullptr;
}
float* write(view v, std::size_t elements, const char* trouble) {
  ensure(v.host<float>().size() >= elements, trouble);
  return v.host<float>().data();
}
float* write_if_any(view v, std::size_t elements, const char* trouble) {
  return v ? write(v, elements, trouble) : nullptr;
}

// Eight columns, or the fewer that are left at the end of a row.
struct whole_vector {
  float_vector load(const float* from) const { return hn::LoadU(float_tag(), from); }
  void store(float_vector value, float* to) const { hn::StoreU(value, float_tag(), to); }
};
struct part_vector {
  std::size_t count;
  float_vector load(const float* from) const {
    HWY_ALIGN float padded[lanes] = {};
    std::memcpy(padded, from, count * sizeof(float));
    return hn::Load(float_tag(), padded);
  }
  void store(float_vector value, float* to) const {
    HWY_ALIGN float padded[lanes];
    hn::Store(value, float_tag(), padded);
    std::memcpy(to, padded, count * sizeof(float));
  }
};

// Calls work(values, place of the first column in a [rows, width] matrix, column, vector) over a
// tile.
template <class Work>
void for_vectors(const chain_tile_values& tile, std::size_t width, const Work& work) {
  for (std::size_t i = 0; i < tile.rows; ++i) {
    const float* values = tile.values + i * tile.stride;
    const std::size_t place = (tile.row + i) * width + tile.column;
    std::size_t j = 0;
    for (; j + lanes <= tile.columns; j += lanes) {
      work(values + j, place + j, tile.column + j, whole_vector());
    }
    if (j < tile.columns) {
      work(values + j, place + j, tile.column + j, part_vector{tile.columns - j});
    }
  }
}

void add_bias_gradient(thread_pool& pool, const float* dy, std::size_t rows, std::size_t out,
                       bool fresh, float* db) {
  const auto add_rows = [=](std::size_t column, const auto& vector) {
    auto sum = fresh ? hn::Zero(float_tag()) : vector.load(db + column);
    for (std::size_t r = 0; r < rows; ++r) sum = sum + vector.load(dy + r * out + column);
    vector.store(sum, db + column);
  };
  const auto add_block = [=](std::size_t column) {
    float_vector sum[bias_vectors];
    for (std::size_t v = 0; v < bias_vectors; ++v) {
      sum[v] = fresh ? hn::Zero(float_tag()) : hn::LoadU(float_tag(), db + column + v * lanes);
    }
    for (std::size_t r = 0; r < rows; ++r) {
      const float* from = dy + r * out + column;
#pragma GCC unroll 8
      for (std::size_t v = 0; v < bias_vectors; ++v) {
        sum[v] = sum[v] + hn::LoadU(float_tag(), from + v * lanes);
      }
    }
    for (std::size_t v = 0; v < bias_vectors; ++v) {
      hn::StoreU(sum[v], float_tag(), db + column + v * lanes);
    }
  };
  pool.parallel_for((out + bias_columns - 1) / bias_columns, [&](std::size_t block, int) {
    std::size_t column = block * bias_columns;
    if (column + bias_columns <= out) return add_block(column);
    for (; column + lanes <= out; column += lanes) add_rows(column, whole_vector());
    if (column < out) add_rows(column, part_vector{out - column});
  });
}

// `product` in runs of k; `c` is its output, where the sums wait between two runs.
void multiply_in_runs(thread_pool& pool, const chain_product& product, std::size_t longest,
                      float* c) {
  const std::size_t runs = std::max<std::size_t>((product.k + longest - 1) / longest, 1);
  const std::size_t length = (product.k + runs - 1) / runs;
  const auto later = [](const chain_operand& from, std::size_t k) {
    return chain_operand{from.data + k * (from.k_contiguous ? 1 : from.stride), from.stride,
                         from.k_contiguous};
  };
  const auto keep = [&](const chain_tile_values& tile) {
    for (std::size_t i = 0; i < tile.rows; ++i) {
      copy_floats(tile.values + i * tile.stride, tile.columns,
                  c + (tile.row + i) * product.n + tile.column);
    }
  };
  std::size_t k = 0;
  do {
    chain_product run = product;
    run.k = std::min(length, product.k - k);
    run.a = later(product.a, k);
    run.b = later(product.b, k);
    if (k > 0) run.start = c;
    k += run.k;
    if (k < product.k || !run.finish) {
      run.finish_reads = nullptr;
      run.finish = keep;
    }
    multiply(pool, run);
  } while (k < product.k);
}

}  // namespace

void linear(thread_pool& pool, const linear_args& args) {
  const std::size_t rows = args.rows, in = args.in, out = args.out;
  const float* bias = read_if_any(args.bias, out, "linear: bias is smaller than [out]");
  const float* residual =
      read_if_any(args.residual, rows * out, "linear: residual is smaller than [rows, out]");
  float* y = write(args.y, rows * out, "linear: y is smaller than [rows, out]");
  float* activated =
      write_if_any(args.gelu, rows * out, "linear: gelu is smaller than [rows, out]");

  chain_product product{
      .m = rows,
      .n = out,
      .k = in,
      .a = {read(args.x, rows * in, "linear: x is smaller than [rows, in]"), in, true},
      .b = {read(args.w, out * in, "linear: w is smaller than [out, in]"), in, true}};
  product.finish_reads = residual;
  product.finish = [=](const chain_tile_values& tile) {
    for_vectors(
        tile, out,
        [=](const float* values, std::size_t place, std::size_t column, const auto& vector) {
          auto value = hn::Load(float_tag(), values);
          if (bias != nullptr) value = value + vector.load(bias + column);
          if (residual != nullptr) value = value + vector.load(residual + place);
          vector.store(value, y + place);
          if (activated != nullptr) vector.store(gelu(float_tag(), value), activated + place);
        });
  };
  // A residual in y has to stay there until its element is complete.
  multiply_in_runs(pool, product, residual == y ? std::max(in, longest_run) : longest_run, y);
}

void linear_backward_input(thread_pool& pool, const linear_backward_input_args& args) {
  const std::size_t rows = args.rows, in = args.in, out = args.out;
  const float* gelu_input = read_if_any(
      args.gelu_input, rows * in, "linear_backward_input: gelu_input is smaller than [rows, in]");
  float* dx = write(args.dx, rows * in, "linear_backward_input: dx is smaller than [rows, in]");

  chain_product product{
      .m = rows,
      .n = in,
      .k = out,
      .a = {read(args.dy, rows * out, "linear_backward_input: dy is smaller than [rows, out]"), out,
            true},
      .b = {read(args.w, out * in, "linear_backward_input: w is smaller than [out, in]"), in,
            false}};
  product.finish_reads = gelu_input;
  product.finish = [=](const chain_tile_values& tile) {
    for_vectors(tile, in,
                [=](const float* values, std::size_t place, std::size_t, const auto& vector) {
                  auto value = hn::Load(float_tag(), values);
                  if (gelu_input != nullptr) {
                    value = value * gelu_derivative(float_tag(), vector.load(gelu_input + place));
                  }
                  vector.store(value, dx + place);
                });
  };
  multiply_in_runs(pool, product, longest_run, dx);
}

void linear_backward_weight(thread_pool& pool, const linear_backward_weight_args& args) {
  const std::size_t rows = args.rows, in = args.in, out = args.out;
  const float* dy =
      read(args.dy, rows * out, "linear_backward_weight: dy is smaller than [rows, out]");
  const float* x = read(args.x, rows * in, "linear_backward_weight: x is smaller than [rows, in]");
  float* dw = write(args.dw, out * in, "linear_backward_weight: dw is smaller than [out, in]");
  float* db = write_if_any(args.db, out, "linear_backward_weight: db is smaller than [out]");

  if (db != nullptr) add_bias_gradient(pool, dy, rows, out, args.fresh, db);
  const chain_product product{.m = out,
                              .n = in,
                              .k = rows,
                              .a = {dy, out, false},
                              .b = {x, in, false},
                              .start = args.fresh ? nullptr : dw};
  multiply_in_runs(pool, product, longest_gradient_run, dw);
}

}  // namespace troupe::compute::cpu
