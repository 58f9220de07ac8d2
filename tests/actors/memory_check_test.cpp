#include "actors/memory_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "actors/model_computation.hpp"
#include "tests/support/computation_world.hpp"

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

// What a device was asked for.
class counting_executor final : public compute::executor {
 public:
  explicit counting_executor(compute::executor& below) : below_(below) {}
  void submit(priority urgency, job work, completion done) override {
    below_.submit(urgency, std::move(work), std::move(done));
  }
  void cancel() override { below_.cancel(); }
  bool busy() const override { return below_.busy(); }
  compute::buffer allocate(std::size_t elements, compute::dtype type) override {
    bytes += elements * compute::bytes_of(type);
    return below_.allocate(elements, type);
  }
  int threads() const override { return below_.threads(); }
  std::string numerics_class() const override { return below_.numerics_class(); }
  std::atomic<std::uint64_t> bytes = 0;

 private:
  compute::executor& below_;
};

std::vector<model::description> models() {
  std::vector<model::description> all;
  for (const model::family f : {model::family::llama, model::family::gpt2}) {
    for (const bool tied : {true, false}) {
      model::description d = small_llama();
      d.family = f;
      d.tied = tied;
      all.push_back(d);
    }
  }
  return all;
}

TEST(memory_check, asks_for_what_a_lone_run_really_allocates) {
  const std::unique_ptr<compute::executor> device = compute::make_cpu_executor(1);
  for (const model::description& d : models()) {
    trainer t(*device, d, settings_with(12));
    t.initialize();
    const std::vector<std::int32_t> tokens(12 * 32, 1);
    ASSERT_TRUE(t.step(1, 0, tokens, tokens));
    EXPECT_EQ(memory_needed(d, settings_with(12)),
              t.activation_bytes() + t.gradient_bytes() + 12 * model::parameter_count(t.layout()));
  }
}

// Two members of three, a spare that holds, and one that does both: all of it but a few numbers.
TEST(memory_check, asks_for_what_a_member_of_a_world_really_allocates) {
  const auto source = [](std::uint64_t, std::span<std::int32_t> tokens,
                         std::span<std::int32_t> targets) -> status {
    std::ranges::fill(tokens, 1);
    std::ranges::fill(targets, 1);
    return done{};
  };
  for (const model::description& d : models()) {
    for (const auto& [first, leaves] : {std::pair{0u, 4u}, {0u, 3u}, {1u, 2u}, {0u, 0u}}) {
      const std::unique_ptr<compute::executor> cpu = compute::make_cpu_executor(1);
      counting_executor device(*cpu);
      tests::test_loop loop;
      model_computation c(device, d, settings_with(4), {.training = source, .validation = {}},
                          [&](std::function<void()> call) { loop.post(std::move(call)); });
      const std::uint64_t before = device.bytes;
      const member_share share{4, first, leaves, {{0, 0}, {3, 0}}, {{1, 0}}};
      c.adopt(share);
      for (std::uint64_t step = 1; step <= 3; ++step) {
        bool loaded = false, finished = false, reduced = false;
        c.load(step, [&](auto) { loaded = true; });
        loop.run_until([&] { return loaded; });
        c.start(step, {.micro_batch_done = {},
                       .nodes_ready = [](std::uint32_t, std::uint8_t) {},
                       .finished = [&](auto, const auto&) { finished = true; }});
        for (std::uint32_t l = 0; l < 4; ++l) c.open(l);
        loop.run_until([&] { return finished; });
        for (const block_id& b : share.primary) {
          const std::vector<std::uint32_t>& sources = c.shape().layers[b.layer][b.block].sources;
          for (std::uint8_t s = 0; s < sources.size(); ++s) {
            for (const tree_node& n : complete_nodes(0, first, 4)) c.slot({b, s, n});
            const std::uint32_t behind = first + leaves;
            for (const tree_node& n : complete_nodes(behind, 4 - behind, 4)) c.slot({b, s, n});
          }
          reduced = false;
          c.reduce(b, step, [&](auto, const auto&) { reduced = true; });
          loop.run_until([&] { return reduced; });
        }
        for (const block_id& b : share.backup) c.sum(b, step);
      }
      const std::uint64_t needed = bytes_of(d, settings_with(4), share).total();
      const std::uint64_t real = device.bytes - before;
      EXPECT_LE(needed, real) << first << " + " << leaves;
      EXPECT_GE(needed + 4096, real) << first << " + " << leaves;
    }
  }
}

TEST(memory_check, a_smaller_share_needs_less) {
  const model::description d = small_llama();
  const member_share whole{4, 0, 4, {{0, 0}, {1, 0}, {2, 0}, {3, 0}}, {}};
  const member_share half{4, 0, 2, {{0, 0}, {1, 0}}, {}};
  const member_bytes all = bytes_of(d, settings_with(12), whole);
  const member_bytes part = bytes_of(d, settings_with(12), half);
  EXPECT_EQ(part.parameters, all.parameters);
  EXPECT_LT(part.optimizer, all.optimizer);
  EXPECT_LT(part.activations, all.activations);
  const member_bytes spare = bytes_of(d, settings_with(12), {4, 0, 0, {}, {{1, 0}}});
  EXPECT_EQ(spare.activations, 0u);
  EXPECT_EQ(spare.optimizer, 2 * spare.parameters);
  EXPECT_EQ(spare.gradients, spare.optimizer);
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
