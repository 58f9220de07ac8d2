#include "config/fingerprint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/load.hpp"

namespace troupe::config {
namespace {

using testing::HasSubstr;

fingerprint of(std::vector<std::string> overrides) {
  auto r =
      load({"run.toml",
            "[[data.sources]]\npath = \"a\"\n[training]\nglobal_batch_size = 8\nsteps = 1000\n",
            {},
            std::move(overrides)});
  EXPECT_TRUE(r) << r.failure().message;
  return r ? fingerprint_of(r->settings) : fingerprint{};
}

TEST(fingerprint, keys_that_change_bits_change_it) {
  for (const char* change :
       {"training.seed=1", "optimizer.lr=1e-3", "training.global_batch_size=16",
        "model.dropout=0.1", "parallelism.virtual_ranks=4", "lr_scheduler.decay_ratio=0.5",
        "tokenizer.add_eos=false", "model.hidden_size=256", "data.shuffle=false",
        "training.steps=2000", "model.tie_word_embeddings=true", "training.skip_nonfinite=false"}) {
    EXPECT_FALSE(differences(of({}), of({change})).empty()) << change;
    EXPECT_NE(hash_of(of({})).hex(), hash_of(of({change})).hex()) << change;
  }
}

TEST(fingerprint, keys_that_cannot_change_bits_do_not) {
  for (const char* same :
       {"training.micro_batch_size=1", "compute.threads=3", "job.name=x", "metrics.log_freq=1",
        "validation.freq=7", "data.sources[0].path=elsewhere", "data.sources[0].name=x",
        "checkpoint.enable=false", "training.max_skipped_steps=3", "model.flavor="}) {
    EXPECT_EQ(of({}), of({same})) << same;
  }
}

TEST(fingerprint, a_default_and_its_value_are_the_same) {
  EXPECT_EQ(of({}), of({"model.vocab_size=257", "model.intermediate_size=1536",
                        "parallelism.virtual_ranks=8", "lr_scheduler.total_steps=1000",
                        "compute.backend=cpu", "model.bias=false"}));
}

TEST(fingerprint, a_run_may_grow_where_the_rate_does_not_follow_its_length) {
  const char* total = "lr_scheduler.total_steps=1000";
  EXPECT_EQ(of({total}), of({total, "training.steps=3000"}));
  const char* constant = "lr_scheduler.decay_type=constant";
  EXPECT_EQ(of({constant}), of({constant, "training.steps=3000"}));
}

TEST(fingerprint, a_run_that_grows_and_bends_its_rate_is_told_how_to_keep_it) {
  const auto list = differences(of({}), of({"training.steps=3000"}));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].key, "lr_scheduler.total_steps");
  EXPECT_EQ(list[0].before, "1000");
  EXPECT_EQ(list[0].now, "3000");
  EXPECT_THAT(describe(list), HasSubstr("lr_scheduler.total_steps: 1000 before, 3000 now; set "
                                        "lr_scheduler.total_steps = 1000"));
}

TEST(fingerprint, a_value_on_one_side_only_is_a_difference) {
  const auto list = differences(of({"lr_scheduler.decay_ratio=0.5"}), of({}));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].before, "0.5");
  EXPECT_EQ(list[0].now, "unset");
  EXPECT_EQ(differences(of({}), of({"lr_scheduler.decay_ratio=0.5"}))[0].before, "unset");
}

}  // namespace
}  // namespace troupe::config
