// Evaluation computes what training computes: the same bits, in whatever portions it is asked.
#include "model/network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "model/training_pass.hpp"
#include "tests/support/tiny_model.hpp"

namespace troupe::model {
namespace {

constexpr std::size_t sequences = 5, seq_len = 70;  // more than one block of keys

std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

struct subject {
  subject(const description& described, int threads, std::size_t longest = seq_len)
      : d(described),
        device(compute::make_cpu_executor(threads)),
        layout(make_layout(d)),
        net(*device, d, layout, longest, 1),
        state(allocate_state(*device, layout, false)),
        batch(tests::random_batch(8, 1, sequences * longest, d.vocabulary)) {
    tests::randomize(*device, layout, 3, state);
  }
  // Of all sequences, `at_once` of them at a time.
  std::vector<float> losses(std::size_t at_once) {
    const std::size_t t = net.seq_len();
    evaluation e(net, at_once * t);
    std::vector<float> all(sequences * t);
    for (std::size_t first = 0; first < sequences; first += at_once) {
      const std::size_t count = std::min(at_once, sequences - first);
      e.losses(state, count, t, std::span(batch.tokens).subspan(first * t, count * t),
               std::span(batch.targets).subspan(first * t, count * t),
               std::span(all).subspan(first * t, count * t));
    }
    return all;
  }

  description d;
  std::unique_ptr<compute::executor> device;
  model_layout layout;
  network net;
  model_state state;
  tests::token_batch batch;
};

std::vector<description> families() {
  description gpt2 = tests::tiny_gpt2(), llama = tests::tiny_llama();
  gpt2.dropout = 0.5;  // of training alone: evaluation must not show it
  return {gpt2, llama};
}

TEST(evaluation, has_the_losses_of_the_training_pass_bit_for_bit) {
  for (description d : families()) {
    d.dropout = 0;
    subject s(d, 1);
    const std::vector<float> losses = s.losses(2);
    // One virtual rank a sequence, so that each sequence's own sum can be compared.
    training_pass pass(s.net, {sequences, sequences, 3});
    const leaf_losses sums = *pass.run(s.state, 1, s.batch.tokens, s.batch.targets);
    for (std::size_t i = 0; i < sequences; ++i) {
      double sum = 0;
      for (std::size_t t = 0; t < seq_len; ++t) sum += losses[i * seq_len + t];
      EXPECT_GT(sum, 1.0);
      EXPECT_EQ(std::bit_cast<std::uint64_t>(sum), std::bit_cast<std::uint64_t>(sums.loss_sums[i]))
          << name_of(d.family) << ", sequence " << i;
    }
  }
}

TEST(evaluation, has_the_same_bits_in_any_portions_and_on_any_threads) {
  for (const description& d : families()) {
    subject one(d, 1), three(d, 3);
    const std::vector<std::uint32_t> expected = bits_of(one.losses(1));
    for (const std::size_t at_once : {2, 3, 5, 8}) {
      EXPECT_EQ(bits_of(one.losses(at_once)), expected) << at_once;
      EXPECT_EQ(bits_of(three.losses(at_once)), expected) << at_once;
    }
  }
}

TEST(evaluation, knows_no_dropout) {
  description d = tests::tiny_gpt2();
  subject without(d, 1);
  d.dropout = 0.5;
  subject with(d, 1);
  EXPECT_EQ(bits_of(with.losses(2)), bits_of(without.losses(2)));
}

TEST(evaluation, loses_nothing_where_a_target_does_not_count) {
  subject s(tests::tiny_llama(), 1);
  const std::vector<float> losses = s.losses(5);
  std::size_t uncounted = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    ASSERT_EQ(losses[i] == 0.0f, s.batch.targets[i] < 0) << i;
    uncounted += s.batch.targets[i] < 0;
  }
  EXPECT_GT(uncounted, 10u);
}

// With a vocabulary this large only a few rows of logits are made at once.
TEST(evaluation, has_the_same_bits_where_the_head_is_computed_in_chunks) {
  description d = tests::tiny_gpt2();
  d.vocabulary = 300000;
  d.width = d.inner = 8;
  d.heads = d.kv_heads = 1;
  d.layers = 1;
  subject s(d, 2, 9);
  ASSERT_LT(s.net.head_chunk(5 * 9), 2 * 9u);
  EXPECT_EQ(bits_of(s.losses(5)), bits_of(s.losses(1)));
}

TEST(evaluation, logits_of_the_last_token_are_those_of_the_whole_window) {
  for (const description& d : families()) {
    subject s(d, 1);
    evaluation e(s.net, sequences * seq_len);
    std::vector<float> all(sequences * seq_len * d.vocabulary), last(sequences * d.vocabulary);
    e.logits(s.state, sequences, seq_len, s.batch.tokens, false, all);
    e.logits(s.state, sequences, seq_len, s.batch.tokens, true, last);
    for (std::size_t i = 0; i < sequences; ++i) {
      const std::size_t row = (i + 1) * seq_len - 1;
      EXPECT_EQ(bits_of(std::span(last).subspan(i * d.vocabulary, d.vocabulary)),
                bits_of(std::span(all).subspan(row * d.vocabulary, d.vocabulary)));
    }
  }
}

// Causality, and that a shorter window than the network was made for is computed alike.
TEST(evaluation, a_token_knows_nothing_of_those_behind_it) {
  for (const description& d : families()) {
    subject s(d, 1);
    const std::vector<float> whole = s.losses(1);
    for (const std::size_t length : {1, 30, 64, 65}) {
      evaluation e(s.net, length);
      std::vector<float> start(length);
      e.losses(s.state, 1, length, std::span(s.batch.tokens).first(length),
               std::span(s.batch.targets).first(length), start);
      EXPECT_EQ(bits_of(start), bits_of(std::span(whole).first(length))) << length;
    }
  }
}

}  // namespace
}  // namespace troupe::model
