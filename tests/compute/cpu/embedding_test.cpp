#include <gtest/gtest.h>

#include "compute/cpu/kernels.hpp"
#include "compute/random.hpp"
#include "tests/compute/cpu/test_data.hpp"

namespace troupe::compute::cpu {
namespace {

using namespace testing;

constexpr std::size_t rows = 12, seq_len = 6, vocabulary = 5;
const std::vector<std::int32_t> tokens = {0, 4, 4, 1, 0, 2, 4, 4, 1, 1, 0, 4};

TEST(embedding, adds_token_and_position_then_drops) {
  const dropout_mask mask{.probability = 0.25f, .seed = 8, .step = 2, .first_sequence = 3};
  for (const std::size_t width : odd_sizes) {
    const floats table = random_floats(vocabulary * width, 1);
    const floats positions = random_floats(seq_len * width, 2);
    floats plain(rows * width), summed(rows * width), expected(rows * width);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const std::size_t row = i / width, column = i % width, place = row % seq_len * width + column;
      const random_key key{8, random_purpose::dropout_embedding, 2, 3 + row / seq_len, 0};
      plain[i] = table[tokens[row] * width + column];
      summed[i] = plain[i] + positions[place];
      const bool removed = random_word(key, place) < dropout_threshold(0.25f);
      expected[i] = removed ? 0.0f : summed[i] * (1.0f / 0.75f);
    }
    for (int threads = 1; threads <= 3; ++threads) {
      SCOPED_TRACE(::testing::Message() << "width " << width << ", threads " << threads);
      thread_pool pool(threads);
      floats out(rows * width);
      embedding_args a{rows, seq_len, width, vocabulary, view_of(tokens), view_of(table)};
      a.out = view_of(out);
      embedding(pool, a);
      expect_same_bits(out, plain, "table only");
      a.positions = view_of(positions);
      embedding(pool, a);
      expect_same_bits(out, summed, "table and positions");
      a.dropout = mask;
      embedding(pool, a);
      expect_same_bits(out, expected, "with dropout");
    }
  }
}

TEST(embedding, backward_is_one_chain_over_the_rows_for_each_element) {
  for (const std::size_t width : odd_sizes) {
    const floats dout = random_floats(rows * width, 3);
    const floats old_table = random_floats(vocabulary * width, 4);
    const floats old_positions = random_floats(seq_len * width, 5);
    floats expected_table = old_table, expected_positions = old_positions;
    for (std::size_t i = 0; i < dout.size(); ++i) {
      expected_table[tokens[i / width] * width + i % width] += dout[i];
      expected_positions[i / width % seq_len * width + i % width] += dout[i];
    }
    for (int threads = 1; threads <= 3; ++threads) {
      SCOPED_TRACE(::testing::Message() << "width " << width << ", threads " << threads);
      thread_pool pool(threads);
      floats table = old_table, positions = old_positions;
      embedding_backward(pool, {rows, seq_len, width, vocabulary, view_of(tokens), view_of(dout),
                                view_of(table), view_of(positions)});
      expect_same_bits(table, expected_table, "dtable");
      expect_same_bits(positions, expected_positions, "dpositions");
      // Sequence by sequence, and without positions.
      table = old_table;
      for (std::size_t first = 0; first < rows; first += seq_len) {
        embedding_backward(
            pool, {seq_len, seq_len, width, vocabulary, view_of(tokens).part(first, seq_len),
                   view_of(dout).part(first * width, seq_len * width), view_of(table)});
      }
      expect_same_bits(table, expected_table, "dtable in pieces");
    }
  }
}

TEST(embedding, is_linear_so_its_numerical_derivative_is_its_backward) {
  constexpr std::size_t width = 7;
  thread_pool pool(1);
  const floats dout = random_floats(rows * width, 6);
  floats dtable(vocabulary * width);
  embedding_backward(
      pool, {rows, seq_len, width, vocabulary, view_of(tokens), view_of(dout), view_of(dtable)});
  const auto loss = [&](const doubles& table) {
    double sum = 0;
    for (std::size_t i = 0; i < dout.size(); ++i) {
      sum += table[tokens[i / width] * width + i % width] * dout[i];
    }
    return sum;
  };
  expect_near(dtable, numerical_gradient(loss, doubles(vocabulary * width)), 1e-6, "dtable");
}

TEST(embedding_death, refuses_tokens_outside_of_the_vocabulary) {
  for (const std::int32_t token : {-1, 5}) {
    const std::vector<std::int32_t> wrong = {token};
    const floats table(vocabulary);
    floats out(1);
    embedding_args a{1, 1, 1, vocabulary, view_of(wrong), view_of(table)};
    a.out = view_of(out);
    EXPECT_DEATH(
        {
          thread_pool pool(1);
          embedding(pool, a);
        },
        "outside of the vocabulary");
  }
}

}  // namespace
}  // namespace troupe::compute::cpu
