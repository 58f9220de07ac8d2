// The promise of the whole model: a run's bits follow from description, data and settings that
// change the mathematics, and from nothing else.
#include "actors/trainer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <ostream>

#include "compute/cpu/instruction_set.hpp"
#include "tests/support/small_training.hpp"
#include "tests/support/tiny_model.hpp"

namespace troupe::actors {
namespace {

using compute::cpu::instruction_set;

// What must not show in the bits.
struct place {
  int threads = 1;
  std::size_t micro_batch = 1;
  instruction_set instructions = compute::cpu::widest_instruction_set();
};

std::ostream& operator<<(std::ostream& out, const place& p) {
  return out << p.threads << " threads, micro-batch " << p.micro_batch
             << (p.instructions == instruction_set::avx2 ? ", avx2" : ", avx512");
}

struct run_shape {
  std::size_t global_batch = 6, virtual_ranks = 3, seq_len = 11;
  std::uint64_t steps = 3, seed = 5;
};

// FNV-1a over the bytes of all parameters and moments.
std::uint64_t hash_of(const model::model_state& state) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const model::layer_state& layer : state.layers) {
    for (const compute::buffer* b :
         {&layer.parameters, &layer.first_moment, &layer.second_moment}) {
      for (const float value : b->all().host<float>()) {
        hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3u;
      }
    }
  }
  return hash;
}

struct run_bits {
  std::uint64_t state = 0;
  std::vector<double> losses, norms;
  friend bool operator==(const run_bits&, const run_bits&) = default;
};

std::ostream& operator<<(std::ostream& out, const run_bits& r) {
  out << std::hex << r.state << std::hexfloat;
  for (const double loss : r.losses) out << " " << loss;
  return out << std::defaultfloat << std::dec;
}

trainer_settings settings_of(const run_shape& shape, std::size_t micro_batch) {
  trainer_settings s = tests::small_training();
  s.batch = {shape.global_batch, shape.virtual_ranks, micro_batch};
  s.seq_len = shape.seq_len;
  s.seed = shape.seed;
  s.max_norm = 1.0;
  return s;
}

tests::token_batch batch_of(const run_shape& shape, const model::description& d,
                            std::uint64_t step) {
  return tests::random_batch(13, step, shape.global_batch * shape.seq_len, d.vocabulary);
}

run_bits train(const model::description& d, const run_shape& shape, const place& where) {
  compute::cpu::choose_instruction_set(where.instructions);
  const std::unique_ptr<compute::executor> device = compute::make_cpu_executor(where.threads);
  trainer t(*device, d, settings_of(shape, where.micro_batch));
  tests::randomize(*device, t.layout(), 17, t.state());
  run_bits bits;
  std::uint64_t updates = 0;
  for (std::uint64_t step = 1; step <= shape.steps; ++step) {
    const tests::token_batch batch = batch_of(shape, d, step);
    const protocol::decision_record record = *t.step(step, updates, batch.tokens, batch.targets);
    EXPECT_FALSE(record.skip) << record.why_skipped;
    updates = record.updates;
    bits.losses.push_back(record.loss);
    bits.norms.push_back(record.grad_norm);
  }
  bits.state = hash_of(t.state());
  compute::cpu::choose_instruction_set(compute::cpu::widest_instruction_set());
  return bits;
}

void expect_same_bits_everywhere(const model::description& d, const run_shape& shape) {
  const run_bits expected = train(d, shape, {});
  const auto check = [&](int threads, std::size_t micro_batch) {
    const place where{threads, micro_batch, compute::cpu::widest_instruction_set()};
    ASSERT_EQ(train(d, shape, where), expected) << where;
  };
  for (std::size_t size = 2; size <= shape.global_batch; ++size) check(1, size);
  for (const std::size_t size : {std::size_t{1}, std::size_t{4}, shape.global_batch}) {
    check(2, size);
  }
  for (const std::size_t size : {std::size_t{2}, shape.global_batch}) check(3, size);
  // More than the batch holds is the whole batch.
  const place above{2, shape.global_batch + 5, compute::cpu::widest_instruction_set()};
  ASSERT_EQ(train(d, shape, above), expected) << above;
  const place narrow{2, 4, instruction_set::avx2};
  ASSERT_EQ(train(d, shape, narrow), expected) << narrow;
}

TEST(trainer, same_bits_for_gpt2) {
  for (const double dropout : {0.0, 0.1}) {
    for (const bool tied : {true, false}) {
      model::description d = tests::tiny_gpt2();
      d.dropout = dropout;
      d.tied = tied;
      SCOPED_TRACE(testing::Message() << "dropout " << dropout << ", tied " << tied);
      expect_same_bits_everywhere(d, {});
    }
  }
}

TEST(trainer, same_bits_for_llama) {
  for (const double dropout : {0.0, 0.1}) {
    for (const bool tied : {true, false}) {
      model::description d = tests::tiny_llama();
      d.dropout = dropout;
      d.tied = tied;
      SCOPED_TRACE(testing::Message() << "dropout " << dropout << ", tied " << tied);
      expect_same_bits_everywhere(d, {});
    }
  }
}

TEST(trainer, same_bits_where_no_size_divides_a_register) {
  model::description d = tests::tiny_gpt2();
  d.vocabulary = 257;
  d.width = 65;
  d.heads = d.kv_heads = 5;
  d.head_dim = 13;
  d.inner = 259;
  d.dropout = 0.1;
  expect_same_bits_everywhere(d, {});
  d = tests::tiny_llama();
  d.vocabulary = 257;
  d.width = 61;
  d.heads = 3;
  d.kv_heads = 1;
  d.head_dim = 14;
  d.inner = 67;
  d.dropout = 0.1;
  expect_same_bits_everywhere(d, {});
}

TEST(trainer, same_bits_where_windows_span_several_key_blocks) {
  for (model::description d : {tests::tiny_gpt2(), tests::tiny_llama()}) {
    d.positions = 150;
    d.layers = 1;
    d.dropout = 0.1;
    expect_same_bits_everywhere(
        d, {.global_batch = 4, .virtual_ranks = 2, .seq_len = 150, .steps = 2});
  }
}

TEST(trainer, same_bits_for_every_number_of_virtual_ranks_that_fits) {
  for (const std::size_t ranks : {1, 2, 4, 8}) {
    SCOPED_TRACE(testing::Message() << ranks << " virtual ranks");
    expect_same_bits_everywhere(
        tests::tiny_llama(), {.global_batch = 8, .virtual_ranks = ranks, .seq_len = 5, .steps = 2});
  }
}

// With a vocabulary this large the logits of a micro-batch are made some rows at a time.
TEST(trainer, same_bits_where_the_head_is_computed_in_chunks) {
  model::description d = tests::tiny_gpt2();
  d.vocabulary = 300000;
  d.width = d.inner = 8;
  d.heads = d.kv_heads = 1;
  d.layers = 1;
  const run_shape shape{.global_batch = 4, .virtual_ranks = 2, .seq_len = 9, .steps = 1};
  const run_bits expected = train(d, shape, {});
  for (const std::size_t micro_batch : {2, 3, 4}) {
    ASSERT_EQ(train(d, shape, {.threads = 2, .micro_batch = micro_batch}), expected) << micro_batch;
  }
}

TEST(trainer, narrow_and_wide_instructions_give_the_same_bits) {
  if (compute::cpu::widest_instruction_set() == instruction_set::avx2) {
    GTEST_SKIP() << "this processor has no wider instructions than AVX2 to compare with";
  }
  for (model::description d : {tests::tiny_gpt2(), tests::tiny_llama()}) {
    d.dropout = 0.1;
    for (const std::size_t micro_batch : {1, 3, 6}) {
      EXPECT_EQ(train(d, {}, {1, micro_batch, instruction_set::avx2}),
                train(d, {}, {1, micro_batch, instruction_set::avx512}));
    }
  }
}

// Otherwise the tests above could compare runs that do nothing.
TEST(trainer, what_changes_the_mathematics_changes_the_bits) {
  const model::description d = tests::tiny_gpt2();
  const run_bits plain = train(d, {}, {});
  model::description with_dropout = d;
  with_dropout.dropout = 0.1;
  const run_bits dropped = train(with_dropout, {}, {});
  EXPECT_NE(dropped.state, plain.state);
  EXPECT_NE(dropped.losses, plain.losses);
  EXPECT_NE(train(with_dropout, {.seed = 6}, {}).losses, dropped.losses);
  EXPECT_EQ(train(d, {.seed = 6}, {}), plain);  // the seed only draws dropout here
  model::description untied = d;
  untied.tied = false;
  EXPECT_NE(train(untied, {}, {}).losses, plain.losses);
}

TEST(trainer, learns_a_batch_by_heart) {
  for (model::description d : {tests::tiny_gpt2(), tests::tiny_llama()}) {
    const std::unique_ptr<compute::executor> device = compute::make_cpu_executor(1);
    const run_shape shape;
    trainer_settings settings = settings_of(shape, 6);
    settings.schedule.shape = model::decay_shape::constant;
    trainer t(*device, d, settings);
    t.initialize();
    const tests::token_batch batch = batch_of(shape, d, 1);
    double first = 0, last = 0;
    for (std::uint64_t step = 1; step <= 60; ++step) {
      last = t.step(step, step - 1, batch.tokens, batch.targets)->loss;
      if (step == 1) first = last;
    }
    EXPECT_NEAR(first, std::log(97.0), 0.1);  // knows nothing: all tokens are alike
    EXPECT_LT(last, 0.5 * first);
  }
}

class skipped_step : public testing::Test {
 protected:
  const run_shape shape_;
  const model::description d_ = tests::tiny_llama();
  const std::unique_ptr<compute::executor> device_ = compute::make_cpu_executor(1);
  std::uint64_t updates_ = 0;

  std::unique_ptr<trainer> trainer_after_one_step(bool skip_nonfinite = true) {
    trainer_settings settings = settings_of(shape_, 2);
    settings.skip_nonfinite = skip_nonfinite;
    auto t = std::make_unique<trainer>(*device_, d_, settings);
    tests::randomize(*device_, t->layout(), 17, t->state());
    updates_ = 0;
    step(*t, 1);
    return t;
  }
  protocol::decision_record step(trainer& t, std::uint64_t n) {
    const tests::token_batch batch = batch_of(shape_, d_, n);
    const protocol::decision_record record = *t.step(n, updates_, batch.tokens, batch.targets);
    updates_ = record.updates;
    return record;
  }
  static float& some_parameter(trainer& t) {
    return t.state().layers[1].parameters.all().host<float>()[3];
  }
};

TEST_F(skipped_step, a_gradient_that_is_not_finite_changes_no_bit) {
  for (const float poison :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const auto t = trainer_after_one_step();
    const float healthy = some_parameter(*t);
    some_parameter(*t) = poison;
    const std::uint64_t before = hash_of(t->state());
    const protocol::decision_record record = step(*t, 2);
    EXPECT_TRUE(record.skip);
    EXPECT_EQ(record.updates, 1u);
    EXPECT_EQ(hash_of(t->state()), before);

    // And leaves nothing behind: the next step is that of a trainer which never met the poison.
    some_parameter(*t) = healthy;
    EXPECT_FALSE(step(*t, 3).skip);
    const auto other = trainer_after_one_step();
    step(*other, 3);
    EXPECT_EQ(hash_of(t->state()), hash_of(other->state()));
  }
}

TEST_F(skipped_step, a_step_that_is_given_up_anywhere_changes_no_bit_and_can_be_done_again) {
  const auto other = trainer_after_one_step();
  step(*other, 2);
  const tests::token_batch batch = batch_of(shape_, d_, 2);
  for (const int jobs : {0, 1, 4, 9}) {
    const auto t = trainer_after_one_step();
    const std::uint64_t before = hash_of(t->state());
    int asked = 0;
    EXPECT_FALSE(
        t->step(2, updates_, batch.tokens, batch.targets, [&] { return asked++ == jobs; }));
    EXPECT_EQ(asked, jobs + 1);
    EXPECT_EQ(hash_of(t->state()), before);
    step(*t, 2);
    EXPECT_EQ(hash_of(t->state()), hash_of(other->state()));
  }
}

TEST_F(skipped_step, a_batch_without_counted_targets_changes_no_bit) {
  const auto t = trainer_after_one_step();
  const std::uint64_t before = hash_of(t->state());
  tests::token_batch batch = batch_of(shape_, d_, 2);
  std::ranges::fill(batch.targets, -1);
  const protocol::decision_record record = *t->step(2, updates_, batch.tokens, batch.targets);
  EXPECT_TRUE(record.skip);
  EXPECT_EQ(record.tokens, 0.0);
  EXPECT_EQ(hash_of(t->state()), before);
}

TEST_F(skipped_step, is_made_where_skipping_is_off) {
  const auto t = trainer_after_one_step(false);
  some_parameter(*t) = std::numeric_limits<float>::quiet_NaN();
  const std::uint64_t before = hash_of(t->state());
  EXPECT_FALSE(step(*t, 2).skip);
  EXPECT_NE(hash_of(t->state()), before);
}

}  // namespace
}  // namespace troupe::actors
