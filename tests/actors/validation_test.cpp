#include "actors/validation.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/base/tree.hpp"
#include "tests/support/tiny_model.hpp"

namespace troupe::actors {
namespace {

constexpr std::size_t seq_len = 9;

struct bench {
  explicit bench(int threads)
      : device(compute::make_cpu_executor(threads)),
        layout(model::make_layout(d)),
        net(*device, d, layout, seq_len, 1),
        state(model::allocate_state(*device, layout, false)) {
    tests::randomize(*device, layout, 3, state);
  }
  result<validation_result> validate_at_once(std::size_t rows, std::uint64_t windows,
                                             std::size_t shares) {
    model::evaluation evaluation(net, rows);
    return validate(evaluation, state, seq_len, windows, shares, window);
  }
  static status window(std::uint64_t index, std::span<std::int32_t> tokens,
                       std::span<std::int32_t> targets) {
    const tests::token_batch batch = tests::random_batch(9, index, seq_len, 97);
    std::ranges::copy(batch.tokens, tokens.begin());
    std::ranges::copy(batch.targets, targets.begin());
    return done{};
  }

  model::description d = tests::tiny_llama();
  std::unique_ptr<compute::executor> device;
  model::model_layout layout;
  model::network net;
  model::model_state state;
};

TEST(validation, has_the_same_bits_however_many_windows_are_computed_at_once) {
  bench one(1), two(2);
  const validation_result expected = *one.validate_at_once(seq_len, 11, 4);
  EXPECT_GT(expected.loss, 1.0);
  EXPECT_GT(expected.tokens, 11 * seq_len / 2);
  EXPECT_LT(expected.tokens, 11 * seq_len);
  for (const std::size_t rows : {2 * seq_len, 3 * seq_len + 5, 20 * seq_len}) {
    const validation_result got = *two.validate_at_once(rows, 11, 4);
    EXPECT_EQ(got.loss, expected.loss) << rows;
    EXPECT_EQ(got.tokens, expected.tokens) << rows;
  }
}

TEST(validation, is_the_mean_over_counted_tokens_of_all_windows) {
  bench b(1);
  double sum = 0, count = 0;
  for (std::uint64_t w = 0; w < 7; ++w) {
    std::vector<std::int32_t> tokens(seq_len), targets(seq_len);
    ASSERT_TRUE(bench::window(w, tokens, targets));
    std::vector<float> losses(seq_len);
    model::evaluation(b.net, seq_len).losses(b.state, 1, seq_len, tokens, targets, losses);
    for (std::size_t t = 0; t < seq_len; ++t) {
      sum += losses[t];
      count += targets[t] >= 0;
    }
  }
  for (const std::size_t shares : {1, 3, 7, 16}) {  // more shares than windows leave some empty
    const validation_result got = *b.validate_at_once(2 * seq_len, 7, shares);
    EXPECT_NEAR(got.loss, sum / count, 1e-12) << shares;
    EXPECT_EQ(got.tokens, count) << shares;
  }
}

TEST(validation, has_the_same_bits_when_its_shares_are_computed_apart) {
  bench b(1);
  for (const std::uint64_t windows : {1, 5, 11}) {
    for (const std::uint32_t shares : {1u, 3u, 4u, 7u}) {
      const validation_result expected = *b.validate_at_once(2 * seq_len, windows, shares);
      for (std::uint32_t first = 1; first <= shares; ++first) {
        std::vector<leaf_loss> all;
        for (const tree_node& part : {tree_node{0, first}, tree_node{first, shares - first}}) {
          model::evaluation evaluation(b.net, 3 * seq_len);
          for (const leaf_loss& loss : *share_losses(evaluation, b.state, seq_len,
                                                     {windows, shares}, part, bench::window)) {
            EXPECT_EQ(loss.leaf, all.size());
            all.push_back(loss);
          }
        }
        EXPECT_EQ(add_shares(all).loss, expected.loss) << windows << " " << shares << " " << first;
        EXPECT_EQ(add_shares(all).tokens, expected.tokens);
      }
    }
  }
}

TEST(validation, of_windows_that_do_not_count_is_zero) {
  bench b(1);
  model::evaluation evaluation(b.net, seq_len);
  const window_source nothing = [](std::uint64_t, std::span<std::int32_t> tokens,
                                   std::span<std::int32_t> targets) -> status {
    std::ranges::fill(tokens, 1);
    std::ranges::fill(targets, -1);
    return done{};
  };
  const validation_result got = *validate(evaluation, b.state, seq_len, 2, 2, nothing);
  EXPECT_EQ(got.loss, 0.0);
  EXPECT_EQ(got.tokens, 0.0);
}

TEST(validation, hands_on_why_a_window_could_not_be_read) {
  bench b(1);
  model::evaluation evaluation(b.net, seq_len);
  const window_source broken = [](std::uint64_t index, std::span<std::int32_t> tokens,
                                  std::span<std::int32_t> targets) -> status {
    if (index == 3) return error{exit_code::bad_data, "window 3 is gone"};
    return bench::window(index, tokens, targets);
  };
  const auto got = validate(evaluation, b.state, seq_len, 5, 2, broken);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.failure().message, "window 3 is gone");
}

}  // namespace
}  // namespace troupe::actors
