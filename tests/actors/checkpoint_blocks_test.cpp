#include "actors/checkpoint_blocks.hpp"

#include <gtest/gtest.h>

#include "config/base/memory_file.hpp"
#include "tests/support/computation_world.hpp"
#include "tests/support/small_training.hpp"
#include "tests/support/tiny_model.hpp"

namespace troupe::actors {
namespace {

constexpr std::size_t seq_len = 7, sequences = 6;

trainer_settings settings() {
  trainer_settings s = tests::small_training();
  s.batch = {sequences, 6, 2};
  s.seq_len = seq_len;
  s.seed = 5;
  return s;
}

sample_sources samples(std::size_t vocabulary) {
  sample_sources sources;
  sources.training = [vocabulary](std::uint64_t position, std::span<std::int32_t> tokens,
                                  std::span<std::int32_t> targets) -> status {
    const tests::token_batch batch = tests::random_batch(3, position, seq_len, vocabulary);
    std::ranges::copy(batch.tokens, tokens.begin());
    std::ranges::copy(batch.targets, targets.begin());
    return done{};
  };
  return sources;
}

checkpoint::facts facts_at(std::uint64_t step, const model::description& d) {
  checkpoint::facts about;
  about.run_id = "run-1";
  about.step = step;
  about.data_position = step * sequences;
  about.model = d;
  return about;
}

// Three members save what each is primary of; two others, and one that only holds, go on from it.
TEST(checkpoint_blocks, a_world_goes_on_from_what_another_world_has_saved_with_the_same_bits) {
  for (model::description d : {tests::tiny_gpt2(), tests::tiny_llama()}) {
    d.vocabulary = 7001;  // two blocks of embedding
    memory_file_system files;
    tests::computation_world before(d, settings(), samples(d.vocabulary), 3, 1);
    before.adopt({.leaves = {1, 3, 2}, .backups = 1});
    before.initialize();
    const std::uint64_t updates = before.step(2, before.step(1, 0).updates).updates;
    const checkpoint::save_place place{"/run/checkpoints", 2, "plan-1"};
    const checkpoint::facts about = facts_at(2, d);
    ASSERT_TRUE(checkpoint::begin_save(files, place, about));
    std::vector<checkpoint::block_record> told;
    for (std::size_t m = 0; m < 3; ++m) {
      const auto written =
          checkpoint::write_blocks(files, place, model::make_layout(d),
                                   blocks_to_write(before.member(m), before.share(m).primary));
      ASSERT_TRUE(written);
      told.insert(told.end(), written->begin(), written->end());
    }
    const auto saved = checkpoint::finish_save(files, place, about, told);
    ASSERT_TRUE(saved) << saved.failure().message;
    std::vector<hash128> weights, states;
    for (const block_hashes& h : before.hashes()) {
      weights.push_back(h.weights);
      states.push_back(h.state);
    }
    EXPECT_EQ(saved->weights_hash, checkpoint::weights_hash(weights));
    EXPECT_EQ(saved->state_hash, checkpoint::state_hash(states, 2, 2 * sequences));

    tests::computation_world after(d, settings(), samples(d.vocabulary), 3, 1);
    after.adopt({.leaves = {4, 0, 2}, .backups = 1, .first_holder = 1});
    for (std::size_t m = 0; m < 3; ++m) {
      const auto loaded = checkpoint::load(files, saved->folder, model::make_layout(d),
                                           places_in(after.member(m), after.share(m)));
      ASSERT_TRUE(loaded) << loaded.failure().message;
    }
    EXPECT_EQ(after.step(3, updates), before.step(3, updates));
    const auto a = after.hashes(), b = before.hashes();
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].state, b[i].state) << i;
  }
}

}  // namespace
}  // namespace troupe::actors
