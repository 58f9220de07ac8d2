// Both instruction sets, one to three threads, odd sizes and places: always the bits of the scalar
// loop.
#include "tests/compute/cpu/linear_oracle.hpp"

#include <limits>

#include "compute/cpu/thread_pool.hpp"

namespace troupe::compute::cpu {
namespace {

class linear_products : public ::testing::TestWithParam<int> {
 protected:
  thread_pool pool{GetParam()};
};

TEST_P(linear_products, forward_equals_a_scalar_chain_for_random_shapes) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    random source(seed);
    const shape s = random_shape(source);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + text(s));
    const values x = random_values(s.rows * s.in, source), w = random_values(s.out * s.in, source);
    const bool with_bias = source() % 2, with_residual = source() % 2, with_gelu = source() % 2;
    const values bias = random_values(with_bias ? s.out : 0, source);
    const values residual = random_values(with_residual ? s.rows * s.out : 0, source);
    const values expected = scalar_linear(s, x, w, bias, residual);
    for_each_instruction_set([&] {
      placed px(x, source() % 16), pw(w, source() % 16), pb(bias, source() % 16);
      placed pr(residual, source() % 16), y(expected.size(), source() % 16);
      placed activated(expected.size(), source() % 16);
      linear_args args{s.rows, s.in, s.out, px.all(), pw.all()};
      if (with_bias) args.bias = pb.all();
      if (with_residual) args.residual = pr.all();
      if (with_gelu) args.gelu = activated.all();
      args.y = y.all();
      linear(pool, args);
      EXPECT_TRUE(same_bits(y.copy(), expected));
      if (with_gelu) {
        values gelus = expected;
        for (float& v : gelus) v = scalar::gelu(v);
        EXPECT_TRUE(same_bits(activated.copy(), gelus));
      }
      EXPECT_TRUE(y.guards_are_whole() && activated.guards_are_whole());
    });
  }
}

TEST_P(linear_products, residual_may_be_the_output) {
  random source(7);
  const shape s{65, 4500, 60};
  const values x = random_values(s.rows * s.in, source), w = random_values(s.out * s.in, source);
  const values bias = random_values(s.out, source);
  const values residual = random_values(s.rows * s.out, source);
  const values expected = scalar_linear(s, x, w, bias, residual);
  for_each_instruction_set([&] {
    placed px(x, 0), pw(w, 1), pb(bias, 2), y(residual, 3);
    linear_args args{s.rows, s.in, s.out, px.all(), pw.all(), pb.all(), y.all(), y.all()};
    linear(pool, args);
    EXPECT_TRUE(same_bits(y.copy(), expected));
  });
}

TEST_P(linear_products, input_gradient_equals_a_scalar_chain_for_random_shapes) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    random source(1000 + seed);
    const shape s = random_shape(source);
    SCOPED_TRACE("seed " + std::to_string(1000 + seed) + ", " + text(s));
    const values dy = random_values(s.rows * s.out, source);
    const values w = random_values(s.out * s.in, source);
    const bool with_gelu = source() % 2;
    const values gelu_input = random_values(with_gelu ? s.rows * s.in : 0, source);
    const values expected = scalar_backward_input(s, dy, w, gelu_input);
    for_each_instruction_set([&] {
      placed pdy(dy, source() % 16), pw(w, source() % 16), pg(gelu_input, source() % 16);
      placed dx(expected.size(), source() % 16);
      linear_backward_input_args args{s.rows, s.in, s.out, pdy.all(), pw.all()};
      if (with_gelu) args.gelu_input = pg.all();
      args.dx = dx.all();
      linear_backward_input(pool, args);
      EXPECT_TRUE(same_bits(dx.copy(), expected));
      EXPECT_TRUE(dx.guards_are_whole());
    });
  }
}

TEST_P(linear_products, input_gradient_of_a_large_vocabulary_equals_a_scalar_chain) {
  random source(14);
  const shape s{5, 40, 9001};
  const values dy = random_values(s.rows * s.out, source);
  const values w = random_values(s.out * s.in, source);
  const values gelu_input = random_values(s.rows * s.in, source);
  const values expected = scalar_backward_input(s, dy, w, gelu_input);
  for_each_instruction_set([&] {
    placed pdy(dy, 1), pw(w, 2), pg(gelu_input, 3), dx(expected.size(), 4);
    linear_backward_input(pool, {s.rows, s.in, s.out, pdy.all(), pw.all(), pg.all(), dx.all()});
    EXPECT_TRUE(same_bits(dx.copy(), expected));
  });
}

TEST_P(linear_products, weight_gradient_equals_a_scalar_chain_for_random_shapes) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    random source(2000 + seed);
    const shape s = random_shape(source);
    SCOPED_TRACE("seed " + std::to_string(2000 + seed) + ", " + text(s));
    const values dy = random_values(s.rows * s.out, source);
    const values x = random_values(s.rows * s.in, source);
    const values old_dw = random_values(s.out * s.in, source);
    const values old_db = random_values(s.out, source);
    const bool fresh = source() % 2, with_bias = source() % 4 != 0;
    values expected_dw = fresh ? values(old_dw.size()) : old_dw;
    values expected_db = fresh ? values(old_db.size()) : old_db;
    scalar_backward_weight(s, dy, x, expected_dw, expected_db);
    for_each_instruction_set([&] {
      placed pdy(dy, source() % 16), px(x, source() % 16), dw(old_dw, source() % 16);
      placed db(old_db, source() % 16);
      linear_backward_weight_args args{s.rows, s.in, s.out, pdy.all(), px.all(), dw.all()};
      if (with_bias) args.db = db.all();
      args.fresh = fresh;
      linear_backward_weight(pool, args);
      EXPECT_TRUE(same_bits(dw.copy(), expected_dw));
      EXPECT_TRUE(same_bits(db.copy(), with_bias ? expected_db : old_db));
      EXPECT_TRUE(dw.guards_are_whole() && db.guards_are_whole());
    });
  }
}

TEST_P(linear_products, rows_in_pieces_equal_the_whole) {
  random source(11);
  const shape s{301, 384, 257};
  const values x = random_values(s.rows * s.in, source), w = random_values(s.out * s.in, source);
  for_each_instruction_set([&] {
    placed px(x, 0), pw(w, 0), whole(s.rows * s.out, 0), pieces(s.rows * s.out, 5);
    linear_args args{s.rows, s.in, s.out, px.all(), pw.all()};
    args.y = whole.all();
    linear(pool, args);
    for (std::size_t row = 0, step = 1; row < s.rows; row += step, step = step * 2 + 1) {
      const std::size_t rows = std::min(step, s.rows - row);
      linear_args piece{rows, s.in, s.out, px.all().part(row * s.in, rows * s.in), pw.all()};
      piece.y = pieces.all().part(row * s.out, rows * s.out);
      linear(pool, piece);
    }
    EXPECT_TRUE(same_bits(pieces.copy(), whole.copy()));
  });
}

// 2500 rows are more than one run of the chain, and the pieces' borders are none of the runs'.
TEST_P(linear_products, weight_gradient_in_pieces_equals_the_whole_and_the_scalar_chain) {
  random source(12);
  const shape s{2500, 33, 29};
  const values dy = random_values(s.rows * s.out, source), x = random_values(s.rows * s.in, source);
  values expected_dw(s.out * s.in), expected_db(s.out);
  scalar_backward_weight(s, dy, x, expected_dw, expected_db);
  for_each_instruction_set([&] {
    placed pdy(dy, 0), px(x, 0), dw(expected_dw.size(), 0), db(expected_db.size(), 0);
    const auto run = [&](std::size_t row, std::size_t rows, bool fresh) {
      linear_backward_weight(pool,
                             {rows, s.in, s.out, pdy.all().part(row * s.out, rows * s.out),
                              px.all().part(row * s.in, rows * s.in), dw.all(), db.all(), fresh});
      return row + rows;
    };
    run(0, s.rows, true);
    EXPECT_TRUE(same_bits(dw.copy(), expected_dw));
    EXPECT_TRUE(same_bits(db.copy(), expected_db));
    run(run(run(run(0, 1, true), 256, false), 1700, false), 543, false);
    EXPECT_TRUE(same_bits(dw.copy(), expected_dw));
    EXPECT_TRUE(same_bits(db.copy(), expected_db));
  });
}

// Large enough for several tiles, column tasks, k blocks, runs of k and chunks of packed B.
TEST_P(linear_products, large_shapes_equal_scalar_chains_at_sampled_places) {
  for (const shape& s :
       {shape{600, 1601, 130}, shape{70, 1100, 4200}, shape{1, 384, 1536}, shape{9, 9001, 70}}) {
    random source(static_cast<unsigned>(s.rows));
    SCOPED_TRACE(text(s));
    const values x = random_values(s.rows * s.in, source), w = random_values(s.out * s.in, source);
    for_each_instruction_set([&] {
      placed px(x, 3), pw(w, 1), y(s.rows * s.out, 7);
      linear_args args{s.rows, s.in, s.out, px.all(), pw.all()};
      args.y = y.all();
      linear(pool, args);
      const values got = y.copy();
      for (int sample = 0; sample < 2000; ++sample) {
        const std::size_t r = source() % s.rows, o = source() % s.out;
        float sum = 0;
        for (std::size_t k = 0; k < s.in; ++k) {
          sum = std::fma(x[r * s.in + k], w[o * s.in + k], sum);
        }
        ASSERT_EQ(got[r * s.out + o], sum) << "row " << r << ", column " << o;
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(threads, linear_products, ::testing::Values(1, 2, 3));

// A chain of K roundings has an error of at most K u sum |a b| (u = 2^-24), to first order.
TEST(linear, is_near_the_product_in_double) {
  random source(13);
  const shape s{40, 700, 60};
  const values x = random_values(s.rows * s.in, source), w = random_values(s.out * s.in, source);
  thread_pool pool(1);
  placed px(x, 0), pw(w, 0), y(s.rows * s.out, 0);
  linear_args args{s.rows, s.in, s.out, px.all(), pw.all()};
  args.y = y.all();
  linear(pool, args);
  const values got = y.copy();
  double largest_share = 0;
  for (std::size_t r = 0; r < s.rows; ++r) {
    for (std::size_t o = 0; o < s.out; ++o) {
      double sum = 0, sizes = 0;
      for (std::size_t k = 0; k < s.in; ++k) {
        const double term = static_cast<double>(x[r * s.in + k]) * w[o * s.in + k];
        sum += term;
        sizes += std::fabs(term);
      }
      const double bound = 1.01 * static_cast<double>(s.in) * 0x1p-24 * sizes;
      EXPECT_LE(std::fabs(got[r * s.out + o] - sum), bound);
      largest_share = std::max(largest_share, std::fabs(sum) / bound);
    }
  }
  EXPECT_GT(largest_share, 1.0) << "a product of zeros would have passed";
}

// Flushed to zero they would vanish, and with them equality with other machines.
TEST_P(linear_products, keep_subnormal_products) {
  const float small = std::numeric_limits<float>::min() / 4;
  const shape s{3, 1, 50};
  for_each_instruction_set([&] {
    placed x(values(3, small), 0), w(values(50, 0.5f), 0), y(150, 0);
    linear_args args{s.rows, s.in, s.out, x.all(), w.all()};
    args.y = y.all();
    linear(pool, args);
    EXPECT_TRUE(same_bits(y.copy(), values(150, small / 2)));
  });
}

TEST(linear, does_nothing_for_no_rows_and_clears_a_fresh_gradient) {
  thread_pool pool(1);
  placed x(values{}, 0), w(values(6, 1.0f), 0), dw(values(6, 1.0f), 0), db(values(3, 1.0f), 0);
  linear_args args{0, 2, 3, x.all(), w.all()};
  args.y = x.all();
  linear(pool, args);
  linear_backward_weight(pool, {0, 2, 3, x.all(), x.all(), dw.all(), db.all(), false});
  EXPECT_TRUE(same_bits(dw.copy(), values(6, 1.0f)));
  linear_backward_weight(pool, {0, 2, 3, x.all(), x.all(), dw.all(), db.all(), true});
  EXPECT_TRUE(same_bits(dw.copy(), values(6, 0.0f)));
  EXPECT_TRUE(same_bits(db.copy(), values(3, 0.0f)));
}

TEST(linear_death, refuses_a_view_that_is_too_small) {
  thread_pool pool(1);
  placed x(values(8, 1.0f), 0), w(values(6, 1.0f), 0), y(12, 0);
  linear_args args{4, 2, 3, x.all(), w.all().part(0, 5)};
  args.y = y.all();
  EXPECT_EXIT(linear(pool, args), ::testing::ExitedWithCode(70), "w is smaller than \\[out, in\\]");
}

}  // namespace
}  // namespace troupe::compute::cpu
