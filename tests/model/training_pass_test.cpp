// What the whole-model comparison in tests/interop and the runs of tests/actors/trainer_test.cpp do
// not look at: sums of each virtual rank, and memory.
#include "model/training_pass.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "tests/support/tiny_model.hpp"

namespace troupe::model {
namespace {

struct subject {
  explicit subject(const description& described, std::size_t seq_len)
      : d(described),
        device(compute::make_cpu_executor(1)),
        layout(make_layout(d)),
        net(*device, d, layout, seq_len, 1),
        state(allocate_state(*device, layout, false)) {
    tests::randomize(*device, layout, 3, state);
  }
  std::vector<float> gradient(training_pass& pass) {
    std::vector<float> all;
    for (std::size_t l = 0; l < layout.size(); ++l) {
      const std::span<const float> g = pass.gradient(l).host<float>();
      all.insert(all.end(), g.begin(), g.end());
    }
    return all;
  }

  description d;
  std::unique_ptr<compute::executor> device;
  model_layout layout;
  network net;
  model_state state;
};

constexpr std::size_t seq_len = 12;

// (a + b) + c in fp32: the virtual ranks' own gradients, each computed alone, in the fixed tree.
// Tied tables are left out here, because head and embedding have a tree each.
TEST(training_pass, adds_the_gradients_of_the_virtual_ranks_in_the_fixed_tree) {
  description gpt2 = tests::tiny_gpt2();
  gpt2.tied = false;
  for (const description& d : {gpt2, tests::tiny_llama()}) {
    subject s(d, seq_len);
    const tests::token_batch batch = tests::random_batch(4, 1, 6 * seq_len, d.vocabulary);
    training_pass whole(s.net, {6, 3, 4});
    const leaf_losses losses = *whole.run(s.state, 1, batch.tokens, batch.targets);
    ASSERT_EQ(losses.loss_sums.size(), 3u);

    std::vector<std::vector<float>> ranks;
    for (std::size_t r = 0; r < 3; ++r) {
      training_pass alone(s.net, {2, 1, 1});
      const std::size_t rows = 2 * seq_len;
      const leaf_losses own =
          *alone.run(s.state, 1, std::span(batch.tokens).subspan(r * rows, rows),
                     std::span(batch.targets).subspan(r * rows, rows));
      EXPECT_EQ(own.loss_sums[0], losses.loss_sums[r]);
      EXPECT_EQ(own.tokens[0], losses.tokens[r]);
      EXPECT_GT(own.tokens[0], 0);
      EXPECT_LT(own.tokens[0], static_cast<double>(rows));
      ranks.push_back(s.gradient(alone));
    }
    const std::vector<float> sum = s.gradient(whole);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const float expected = (ranks[0][i] + ranks[1][i]) + ranks[2][i];
      ASSERT_EQ(std::bit_cast<std::uint32_t>(sum[i]), std::bit_cast<std::uint32_t>(expected)) << i;
    }
    EXPECT_NE(ranks[0], ranks[1]);
  }
}

TEST(training_pass, a_tied_table_gets_the_gradients_of_head_and_embedding) {
  for (description d : {tests::tiny_gpt2(), tests::tiny_llama()}) {
    d.tied = true;
    subject tied(d, seq_len);
    d.tied = false;
    subject untied(d, seq_len);
    // The same model: the untied head is a copy of the table.
    const std::size_t size = d.vocabulary * d.width;
    for (std::size_t l = 0; l < tied.layout.size(); ++l) {
      std::ranges::copy(tied.state.layers[l].parameters.all().host<float>(),
                        untied.state.layers[l].parameters.all().host<float>().begin());
    }
    const std::size_t last = tied.layout.size() - 1;
    const std::size_t at = untied.layout[last].find(tensor_role::head)->offset;
    std::ranges::copy(tied.state.layers[0].parameters.all().host<float>().first(size),
                      untied.state.layers[last].parameters.all().host<float>().begin() +
                          static_cast<std::ptrdiff_t>(at));

    const tests::token_batch batch = tests::random_batch(4, 1, 6 * seq_len, d.vocabulary);
    training_pass a(tied.net, {6, 3, 4}), b(untied.net, {6, 3, 2});
    const leaf_losses tied_losses = *a.run(tied.state, 1, batch.tokens, batch.targets);
    EXPECT_EQ(b.run(untied.state, 1, batch.tokens, batch.targets)->loss_sums,
              tied_losses.loss_sums);
    const std::span<const float> sum = a.gradient(0).host<float>();
    const std::span<const float> embedding = b.gradient(0).host<float>();
    const std::span<const float> head = b.gradient(last).host<float>().subspan(at, size);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(sum[i], head[i] + embedding[i]) << i;
  }
}

// A pass over a part of the virtual ranks, fed job by job, against the nodes that a whole pass over
// only the node's ranks gives: dropout's keys are positions in the global batch, so the part must
// know where it stands.
TEST(training_pass, of_some_virtual_ranks_completes_their_nodes_with_the_bits_of_the_whole) {
  constexpr std::size_t ranks = 5, per_rank = 2;
  for (description d : {tests::tiny_gpt2(), tests::tiny_llama()}) {
    d.dropout = 0.1;
    for (const bool tied : {true, false}) {
      d.tied = tied;
      subject s(d, seq_len);
      const tests::token_batch batch =
          tests::random_batch(4, 1, ranks * per_rank * seq_len, d.vocabulary);
      const auto run_jobs = [&](training_pass& pass) {
        const std::size_t at = pass.ranks().first * per_rank * seq_len;
        const std::size_t rows = pass.sequences() * seq_len;
        std::vector<layer_source> complete;
        std::vector<std::size_t> needed;
        for (step_job& job : pass.jobs(s.state, 1, std::span(batch.tokens).subspan(at, rows),
                                       std::span(batch.targets).subspan(at, rows))) {
          if (job.needs) needed.push_back(*job.needs);
          s.device->run(job.work);
          for (const layer_source& c : job.completes) complete.push_back(c);
        }
        std::vector<std::size_t> every;
        std::vector<layer_source> in_order = {{s.layout.size() - 1, 0}};
        if (tied) in_order.push_back({0, 1});
        for (std::size_t l = 0; l < s.layout.size(); ++l) every.push_back(l);
        for (std::size_t l = s.layout.size() - 1; l-- > 0;) in_order.push_back({l, 0});
        EXPECT_EQ(needed, every);
        EXPECT_EQ(complete, in_order);
        return complete;
      };
      for (std::uint32_t first = 0; first < ranks; ++first) {
        for (std::uint32_t count = 1; first + count <= ranks; ++count) {
          // Micro-batches of 3 sequences, which span virtual ranks of 2.
          training_pass part(s.net, {ranks * per_rank, ranks, 3}, {first, count});
          const std::vector<layer_source> sources = run_jobs(part);
          for (const tree_node& node : complete_nodes(first, count, ranks)) {
            training_pass alone(s.net, {ranks * per_rank, ranks, 1}, {node.first, node.leaves});
            run_jobs(alone);
            for (const layer_source& of : sources) {
              ASSERT_TRUE(std::ranges::equal(part.node(of, node).host<float>(),
                                             alone.node(of, node).host<float>()))
                  << "layer " << of.layer << ", ranks " << node.first << " + " << node.leaves;
            }
            for (std::uint32_t r = 0; r < node.leaves; ++r) {
              EXPECT_EQ(part.losses().loss_sums[node.first - first + r],
                        alone.losses().loss_sums[r]);
              EXPECT_EQ(part.losses().tokens[node.first - first + r], alone.losses().tokens[r]);
            }
          }
        }
      }
    }
  }
}

TEST(training_pass, gives_the_same_sums_when_run_again) {
  subject s(tests::tiny_gpt2(), seq_len);
  const tests::token_batch batch = tests::random_batch(4, 1, 6 * seq_len, s.d.vocabulary);
  const tests::token_batch other = tests::random_batch(4, 2, 6 * seq_len, s.d.vocabulary);
  training_pass pass(s.net, {6, 3, 4});
  pass.run(s.state, 1, batch.tokens, batch.targets);
  const std::vector<float> first = s.gradient(pass);
  pass.run(s.state, 2, other.tokens, other.targets);
  EXPECT_NE(s.gradient(pass), first);
  pass.run(s.state, 1, batch.tokens, batch.targets);
  EXPECT_EQ(s.gradient(pass), first);
}

TEST(training_pass, memory_follows_the_tokens_at_once_and_not_the_window) {
  for (description d : {tests::tiny_gpt2(), tests::tiny_llama()}) {
    for (const double dropout : {0.0, 0.1}) {
      d.positions = 8192;
      d.layers = 1;
      d.dropout = dropout;
      subject short_windows(d, 256), long_windows(d, 8192);
      const std::size_t few = training_pass(short_windows.net, {32, 1, 32}).activation_bytes();
      const std::size_t many = training_pass(long_windows.net, {1, 1, 1}).activation_bytes();
      EXPECT_LE(static_cast<double>(many), 1.1 * static_cast<double>(few));
      EXPECT_GE(few, 8192 * d.width * sizeof(float) * 10);
    }
  }
}

TEST(training_pass, memory_grows_with_the_micro_batch) {
  subject s(tests::tiny_gpt2(), seq_len);
  const std::size_t one = training_pass(s.net, {8, 1, 1}).activation_bytes();
  const std::size_t eight = training_pass(s.net, {8, 1, 8}).activation_bytes();
  EXPECT_GT(eight, 7 * one);
  EXPECT_LE(eight, 8 * one);
}

}  // namespace
}  // namespace troupe::model
