#include <gtest/gtest.h>

#include <cmath>

#include "compute/cpu/kernels.hpp"
#include "tests/compute/cpu/test_data.hpp"

namespace troupe::compute::cpu {
namespace {

using namespace testing;

const std::vector<std::size_t> sizes = {0, 1, 7, 13, 65, 257, 50001};

TEST(reduce, fill_copy_and_add_reach_every_element_with_any_thread_count) {
  for (int threads = 1; threads <= 3; ++threads) {
    thread_pool pool(threads);
    for (const std::size_t size : sizes) {
      SCOPED_TRACE(::testing::Message() << "size " << size << ", threads " << threads);
      const floats a = random_floats(size, 1), b = random_floats(size, 2);
      floats out(size), expected(size);
      fill(pool, view_of(out), 1.5f);
      expect_same_bits(out, floats(size, 1.5f), "fill");
      copy(pool, view_of(a), view_of(out));
      expect_same_bits(out, a, "copy");
      for (std::size_t i = 0; i < size; ++i) expected[i] = a[i] + b[i];
      add(pool, view_of(a), view_of(b), view_of(out));
      expect_same_bits(out, expected, "add");
      out = a;
      add(pool, view_of(out), view_of(b), view_of(out));
      expect_same_bits(out, expected, "add in place of the left");
      out = b;
      add(pool, view_of(a), view_of(out), view_of(out));
      expect_same_bits(out, expected, "add in place of the right");
    }
  }
}

TEST(reduce, fill_copy_and_add_know_double_precision) {
  thread_pool pool(1);
  const doubles a = {1e300, -1.0 / 3}, b = {1, 2};
  doubles out(2);
  fill(pool, view_of(out), 0.25f);
  expect_same_bits(out, {0.25, 0.25}, "fill");
  copy(pool, view_of(a), view_of(out));
  expect_same_bits(out, a, "copy");
  add(pool, view_of(a), view_of(b), view_of(out));
  expect_same_bits(out, {1e300 + 1, -1.0 / 3 + 2}, "add");
}

TEST(reduce, sum_squares_has_eight_double_lanes_and_a_fixed_fold) {
  for (const std::size_t size : sizes) {
    const floats x = random_floats(size, 3, 1e3f);
    const double expected = lane_sum<double>(size, [&](double s, std::size_t i) {
      return s + static_cast<double>(x[i]) * static_cast<double>(x[i]);
    });
    for (int threads = 1; threads <= 3; ++threads) {
      SCOPED_TRACE(::testing::Message() << "size " << size << ", threads " << threads);
      thread_pool pool(threads);
      doubles out = {99};
      sum_squares(pool, view_of(x), view_of(out));
      expect_same_bits(out, {expected}, "sum");
    }
  }
}

TEST(reduce, sum_squares_does_not_overflow_where_float_would) {
  thread_pool pool(1);
  const floats x(16, 1e30f);
  doubles out(1);
  sum_squares(pool, view_of(x), view_of(out));
  EXPECT_NEAR(out[0] / 16e60, 1, 1e-6);
}

TEST(reduce, add_in_order_continues_one_chain) {
  thread_pool pool(3);
  const floats x = random_floats(1001, 4, 1e4f);
  const doubles y = {1e-9, 1e9};
  double expected = 0.125;
  for (const float value : x) expected += value;
  for (const double value : y) expected += value;
  doubles out = {0.125};
  add_in_order(pool, view_of(x).part(0, 400), view_of(out));
  add_in_order(pool, view_of(x).from(400), view_of(out));
  add_in_order(pool, view_of(y), view_of(out));
  expect_same_bits(out, {expected}, "sum");
}

TEST(reduce_death, refuses_views_that_do_not_fit) {
  const floats three(3);
  floats four(4);
  const doubles wide(4);
  EXPECT_DEATH(
      {
        thread_pool pool(1);
        copy(pool, view_of(three), view_of(four));
      },
      "one size and type");
  EXPECT_DEATH(
      {
        thread_pool pool(1);
        copy(pool, view_of(wide), view_of(four));
      },
      "one size and type");
  EXPECT_DEATH(
      {
        thread_pool pool(1);
        add(pool, view_of(three), view_of(four), view_of(four));
      },
      "views of one size");
}

}  // namespace
}  // namespace troupe::compute::cpu
