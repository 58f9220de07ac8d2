#include "actors/memory_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

model::description small_llama() {
  model::description d;
  d.vocabulary = 257;
  d.width = 64;
  d.inner = 256;
  d.layers = 2;
  d.heads = d.kv_heads = 4;
  d.head_dim = 16;
  d.positions = 32;
  return d;
}

trainer_settings settings_with(std::size_t micro_batch) {
  trainer_settings s;
  s.batch = {.global_batch = 12, .virtual_ranks = 4, .micro_batch = micro_batch};
  s.seq_len = 32;
  s.schedule.total_steps = 10;
  s.adamw = {0.9, 0.95, 1e-8, 0.1};
  return s;
}

TEST(memory_check, asks_for_no_more_than_the_run_really_allocates_and_for_most_of_it) {
  const std::unique_ptr<compute::executor> device = compute::make_cpu_executor(1);
  for (const model::family f : {model::family::llama, model::family::gpt2}) {
    model::description d = small_llama();
    d.family = f;
    trainer t(*device, d, settings_with(12));
    t.initialize();
    const std::vector<std::int32_t> tokens(12 * 32, 1);
    ASSERT_TRUE(t.step(1, 0, tokens, tokens));
    const std::uint64_t real =
        t.activation_bytes() + t.gradient_bytes() + 12 * model::parameter_count(t.layout());
    const std::uint64_t needed = memory_needed(d, settings_with(12));
    EXPECT_LE(needed, real);
    EXPECT_GE(needed, real / 2);
  }
}

TEST(memory_check, refuses_what_cannot_fit_and_names_both_numbers) {
  const model::description d = small_llama();
  const std::uint64_t needed = memory_needed(d, settings_with(12));
  EXPECT_TRUE(check_memory(d, settings_with(12), needed));
  EXPECT_TRUE(check_memory(d, settings_with(12), 0));  // the system does not say
  const status refused = check_memory(d, settings_with(12), needed / 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code, exit_code::bad_config);
  EXPECT_THAT(refused.failure().message, ::testing::HasSubstr("training.micro_batch_size"));
}

TEST(memory_check, counts_a_micro_batch_only_as_far_as_the_batch_goes) {
  EXPECT_EQ(memory_needed(small_llama(), settings_with(12)),
            memory_needed(small_llama(), settings_with(1000)));
  EXPECT_LT(memory_needed(small_llama(), settings_with(1)),
            memory_needed(small_llama(), settings_with(12)));
}

TEST(memory_check, reads_what_the_system_has) { EXPECT_GT(memory_available(), 1u << 20); }

}  // namespace
}  // namespace troupe::actors
