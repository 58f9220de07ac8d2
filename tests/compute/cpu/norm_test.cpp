#include <gtest/gtest.h>

#include <cmath>

#include "compute/cpu/kernels.hpp"
#include "tests/compute/cpu/test_data.hpp"

namespace troupe::compute::cpu {
namespace {

using namespace testing;

constexpr float epsilon = 1e-5f;

// One norm with everything that its three operations read and write.
struct norm_data {
  norm_kind kind;
  std::size_t rows, width;
  floats x, gain, bias, dy, residual;
  floats y, mean, rstd, dx, dgain, dbias;

  norm_data(norm_kind k, std::size_t r, std::size_t w, unsigned seed)
      : kind(k),
        rows(r),
        width(w),
        x(random_floats(r * w, seed, 2, 0.7f)),
        gain(random_floats(w, seed + 1)),
        dy(random_floats(r * w, seed + 2)),
        residual(random_floats(r * w, seed + 3)),
        y(r * w),
        rstd(r),
        dx(r * w),
        dgain(w) {
    if (kind == norm_kind::layer) {
      bias = random_floats(w, seed + 4);
      mean.resize(r);
      dbias.resize(w);
    }
  }
  bool layer() const { return kind == norm_kind::layer; }
  float mean_of(std::size_t row) const { return layer() ? mean[row] : 0; }

  // Rows first ... first + count - 1 by the operations.
  void forward(thread_pool& pool, std::size_t first, std::size_t count) {
    norm_args a{kind,
                count,
                width,
                epsilon,
                view_of(x).part(first * width, count * width),
                view_of(gain),
                {},
                view_of(y).part(first * width, count * width),
                {},
                view_of(rstd).part(first, count)};
    if (layer()) a.bias = view_of(bias), a.mean = view_of(mean).part(first, count);
    norm(pool, a);
  }
  void backward_input(thread_pool& pool, const_view around, view to) {
    norm_backward_input_args a{kind,          rows, width,         view_of(dy), view_of(x),
                               view_of(gain), {},   view_of(rstd), around,      to};
    if (layer()) a.mean = view_of(mean);
    norm_backward_input(pool, a);
  }
  void backward_weight(thread_pool& pool, std::size_t first, std::size_t count, bool fresh) {
    norm_backward_weight_args a{kind,
                                count,
                                width,
                                view_of(dy).part(first * width, count * width),
                                view_of(x).part(first * width, count * width),
                                {},
                                view_of(rstd).part(first, count),
                                view_of(dgain),
                                {},
                                fresh};
    if (layer()) a.mean = view_of(mean).part(first, count), a.dbias = view_of(dbias);
    norm_backward_weight(pool, a);
  }

  // The same by the documented order, one float after the other.
  void reference_forward() {
    const float w = static_cast<float>(width);
    for (std::size_t r = 0; r < rows; ++r) {
      const float* row = &x[r * width];
      const float m =
          layer() ? lane_sum(width, [&](float s, std::size_t i) { return s + row[i]; }) / w : 0;
      const float variance =
          lane_sum(width,
                   [&](float s, std::size_t i) { return std::fma(row[i] - m, row[i] - m, s); }) /
          w;
      rstd[r] = 1.0f / std::sqrt(variance + epsilon);
      if (layer()) mean[r] = m;
      for (std::size_t i = 0; i < width; ++i) {
        const float n = (row[i] - m) * rstd[r];
        y[r * width + i] = layer() ? std::fma(n, gain[i], bias[i]) : n * gain[i];
      }
    }
  }
  void reference_backward(bool with_residual) {
    const float w = static_cast<float>(width);
    for (float& g : dgain) g = 0;
    for (float& b : dbias) b = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      const auto n = [&](std::size_t i) { return (x[r * width + i] - mean_of(r)) * rstd[r]; };
      const auto g = [&](std::size_t i) { return dy[r * width + i] * gain[i]; };
      float g_mean = lane_sum(width, [&](float s, std::size_t i) { return s + g(i); }) / w;
      if (!layer()) g_mean = 0;
      const float gn_mean =
          lane_sum(width, [&](float s, std::size_t i) { return std::fma(g(i), n(i), s); }) / w;
      for (std::size_t i = 0; i < width; ++i) {
        const float inner = std::fma(-n(i), gn_mean, g(i) - g_mean);
        dx[r * width + i] =
            with_residual ? std::fma(rstd[r], inner, residual[r * width + i]) : rstd[r] * inner;
        dgain[i] = std::fma(dy[r * width + i], n(i), dgain[i]);
        if (layer()) dbias[i] += dy[r * width + i];
      }
    }
  }

  // Output in double; the weights of `loss` are dy.
  doubles exact(const doubles& from, const doubles& gains, const doubles& biases) const {
    doubles out(from.size());
    for (std::size_t r = 0; r < rows; ++r) {
      double m = 0, variance = 0;
      for (std::size_t i = 0; i < width && layer(); ++i) m += from[r * width + i] / width;
      for (std::size_t i = 0; i < width; ++i)
        variance += std::pow(from[r * width + i] - m, 2) / width;
      for (std::size_t i = 0; i < width; ++i) {
        const double n = (from[r * width + i] - m) / std::sqrt(variance + epsilon);
        out[r * width + i] = n * gains[i] + (layer() ? biases[i] : 0);
      }
    }
    return out;
  }
};

class norm_of_kind : public ::testing::TestWithParam<norm_kind> {};

TEST_P(norm_of_kind, equals_the_documented_order_for_any_size_and_thread_count) {
  for (const std::size_t width : odd_sizes) {
    norm_data expected(GetParam(), 11, width, 5);
    expected.reference_forward();
    for (int threads = 1; threads <= 3; ++threads) {
      SCOPED_TRACE(::testing::Message() << "width " << width << ", threads " << threads);
      thread_pool pool(threads);
      norm_data data(GetParam(), 11, width, 5);
      data.forward(pool, 0, 11);
      expect_same_bits(data.y, expected.y, "y");
      expect_same_bits(data.mean, expected.mean, "mean");
      expect_same_bits(data.rstd, expected.rstd, "rstd");
    }
  }
}

TEST_P(norm_of_kind, backward_equals_the_documented_order_for_any_size_and_thread_count) {
  for (const std::size_t width : odd_sizes) {
    norm_data expected(GetParam(), 19, width, 6);
    expected.reference_forward();
    for (int threads = 1; threads <= 3; ++threads) {
      SCOPED_TRACE(::testing::Message() << "width " << width << ", threads " << threads);
      thread_pool pool(threads);
      norm_data data(GetParam(), 19, width, 6);
      data.forward(pool, 0, 19);
      data.backward_weight(pool, 0, 19, true);
      data.backward_input(pool, {}, view_of(data.dx));
      expected.reference_backward(false);
      expect_same_bits(data.dx, expected.dx, "dx without residual");
      expect_same_bits(data.dgain, expected.dgain, "dgain");
      expect_same_bits(data.dbias, expected.dbias, "dbias");
      data.backward_input(pool, view_of(data.residual), view_of(data.dx));
      expected.reference_backward(true);
      expect_same_bits(data.dx, expected.dx, "dx");
      data.backward_input(pool, view_of(data.residual), view_of(data.residual));
      expect_same_bits(data.residual, expected.dx, "dx in place of the residual");
    }
  }
}

TEST_P(norm_of_kind, rows_in_pieces_equal_rows_together) {
  constexpr std::size_t rows = 37;
  thread_pool pool(2);
  norm_data whole(GetParam(), rows, 65, 7), pieces(GetParam(), rows, 65, 7);
  whole.forward(pool, 0, rows);
  whole.backward_weight(pool, 0, rows, true);
  for (const auto& [first, count] : {std::pair{0, 3}, {3, 1}, {4, 20}, {24, 13}}) {
    pieces.forward(pool, first, count);
    pieces.backward_weight(pool, first, count, first == 0);
  }
  expect_same_bits(pieces.y, whole.y, "y");
  expect_same_bits(pieces.dgain, whole.dgain, "dgain");
  expect_same_bits(pieces.dbias, whole.dbias, "dbias");
}

TEST_P(norm_of_kind, agrees_with_double_precision_and_numerical_derivatives) {
  thread_pool pool(1);
  norm_data data(GetParam(), 3, 13, 8);
  data.forward(pool, 0, 3);
  data.backward_weight(pool, 0, 3, true);
  data.backward_input(pool, {}, view_of(data.dx));
  const doubles x = widened(data.x), gain = widened(data.gain), bias = widened(data.bias);
  expect_near(data.y, data.exact(x, gain, bias), 1e-6, "y");
  const auto by_x = [&](const doubles& v) { return dot(data.exact(v, gain, bias), data.dy); };
  const auto by_gain = [&](const doubles& v) { return dot(data.exact(x, v, bias), data.dy); };
  const auto by_bias = [&](const doubles& v) { return dot(data.exact(x, gain, v), data.dy); };
  expect_near(data.dx, numerical_gradient(by_x, x), 1e-6, "dx");
  expect_near(data.dgain, numerical_gradient(by_gain, gain), 1e-6, "dgain");
  expect_near(data.dbias, numerical_gradient(by_bias, bias), 1e-6, "dbias");
}

TEST(norm, keeps_its_digits_far_from_zero) {
  thread_pool pool(1);
  norm_data data(norm_kind::layer, 2, 257, 9);
  for (float& value : data.x) value += 1000;
  data.forward(pool, 0, 2);
  expect_near(data.y, data.exact(widened(data.x), widened(data.gain), widened(data.bias)), 2e-4,
              "y");
}

INSTANTIATE_TEST_SUITE_P(norm, norm_of_kind, ::testing::Values(norm_kind::layer, norm_kind::rms),
                         [](const auto& kind) {
                           return kind.param == norm_kind::layer ? "layer" : "rms";
                         });

}  // namespace
}  // namespace troupe::compute::cpu
