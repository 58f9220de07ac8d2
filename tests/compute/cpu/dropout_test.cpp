#include <gtest/gtest.h>

#include "compute/cpu/dropout_words.hpp"
#include "compute/cpu/kernels.hpp"
#include "compute/random.hpp"
#include "tests/compute/cpu/test_data.hpp"

namespace troupe::compute::cpu {
namespace {

using namespace testing;

const dropout_mask mask{.probability = 0.3f,
                        .seed = 0x123456789abcull,
                        .purpose = random_purpose::dropout_mlp_branch,
                        .step = 17,
                        .layer = 5,
                        .first_sequence = 40};

// The rule of ops.hpp, element by element.
float dropped(float x, const dropout_mask& m, std::size_t row, std::size_t column,
              std::size_t seq_len, std::size_t width) {
  const random_key key{m.seed, m.purpose, m.step, m.first_sequence + row / seq_len, m.layer};
  const std::uint32_t word = random_word(key, row % seq_len * width + column);
  return word < dropout_threshold(m.probability) ? 0.0f : x * (1.0f / (1.0f - m.probability));
}

TEST(dropout, words_are_those_of_the_scalar_generator_from_any_element_on) {
  const random_key key{99, random_purpose::dropout_attention, 3, 4, 5};
  for (const std::uint64_t first :
       {0ull, 1ull, 4ull, 31ull, 1000ull, (1ull << 34) - 77, (1ull << 35) + 2}) {
    for (const std::size_t size : {1, 3, 8, 31, 32, 33, 200}) {
      std::vector<std::uint32_t> words(size), expected(size);
      draw_words(key, first, words);
      for (std::size_t i = 0; i < size; ++i) expected[i] = random_word(key, first + i);
      ASSERT_EQ(words, expected) << "from " << first << ", " << size << " words";
    }
  }
}

TEST(dropout, follows_the_mask_rule_for_any_size_and_thread_count) {
  constexpr std::size_t rows = 14, seq_len = 7;
  for (const std::size_t width : {1, 7, 13, 65, 257, 1100}) {
    const floats x = random_floats(rows * width, 1), residual = random_floats(rows * width, 2);
    floats expected(rows * width), expected_sum(rows * width);
    for (std::size_t i = 0; i < x.size(); ++i) {
      expected[i] = dropped(x[i], mask, i / width, i % width, seq_len, width);
      expected_sum[i] = residual[i] + expected[i];
    }
    for (int threads = 1; threads <= 3; ++threads) {
      SCOPED_TRACE(::testing::Message() << "width " << width << ", threads " << threads);
      thread_pool pool(threads);
      floats out(rows * width);
      dropout(pool, {rows, seq_len, width, view_of(x), {}, mask, view_of(out)});
      expect_same_bits(out, expected, "dropout(x)");
      dropout(pool, {rows, seq_len, width, view_of(x), view_of(residual), mask, view_of(out)});
      expect_same_bits(out, expected_sum, "residual + dropout(x)");
    }
  }
}

TEST(dropout, of_sequences_in_pieces_equals_sequences_together) {
  constexpr std::size_t seq_len = 5, width = 33, sequences = 4;
  thread_pool pool(2);
  const floats x = random_floats(sequences * seq_len * width, 3);
  floats whole(x.size()), pieces(x.size());
  dropout(pool, {sequences * seq_len, seq_len, width, view_of(x), {}, mask, view_of(whole)});
  for (const auto& [first, count] : {std::pair{0, 1}, {1, 2}, {3, 1}}) {
    dropout_mask moved = mask;
    moved.first_sequence += first;
    const std::size_t begin = first * seq_len * width, size = count * seq_len * width;
    dropout(pool, {count * seq_len,
                   seq_len,
                   width,
                   view_of(x).part(begin, size),
                   {},
                   moved,
                   view_of(pieces).part(begin, size)});
  }
  expect_same_bits(pieces, whole, "out");
}

TEST(dropout, removes_the_share_it_was_told_and_keeps_the_mean) {
  constexpr std::size_t rows = 64, width = 1024;
  thread_pool pool(1);
  const floats ones(rows * width, 1.0f);
  floats out(rows * width);
  dropout(pool, {rows, 8, width, view_of(ones), {}, mask, view_of(out)});
  double removed = 0, sum = 0;
  for (const float value : out) removed += value == 0, sum += value;
  EXPECT_NEAR(removed / out.size(), 0.3, 5 * std::sqrt(0.21 / out.size()));
  EXPECT_NEAR(sum / out.size(), 1, 5 * std::sqrt(0.3 / 0.7 / out.size()));
}

TEST(dropout, of_probability_zero_changes_nothing) {
  thread_pool pool(1);
  const floats x = random_floats(3 * 13, 4), residual = random_floats(3 * 13, 5);
  floats out(3 * 13), sum(3 * 13);
  for (std::size_t i = 0; i < x.size(); ++i) sum[i] = residual[i] + x[i];
  dropout(pool, {3, 3, 13, view_of(x), {}, {}, view_of(out)});
  expect_same_bits(out, x, "dropout(x)");
  dropout(pool, {3, 3, 13, view_of(x), view_of(residual), {}, view_of(out)});
  expect_same_bits(out, sum, "residual + x");
}

TEST(dropout, removes_even_infinities) {
  thread_pool pool(1);
  const floats x(4096, std::numeric_limits<float>::infinity());
  floats out(4096);
  dropout(pool, {4, 4, 1024, view_of(x), {}, mask, view_of(out)});
  EXPECT_GT(std::count(out.begin(), out.end(), 0.0f), 1000);
  EXPECT_GT(std::count(out.begin(), out.end(), x[0]), 2000);
}

}  // namespace
}  // namespace troupe::compute::cpu
