// Assignments, one by one: a value that lands in the wrong place trains something else without a
// word, so each setting here has a value of its own.
#include "actors/from_settings.hpp"

#include <gtest/gtest.h>

#include "config/load.hpp"

namespace troupe::actors {
namespace {

config::settings settings_of(const std::string& more) {
  const auto loaded = config::load({.file = "run.toml",
                                    .text = "[[data.sources]]\npath = \"a.jsonl\"\n"
                                            "format = \"jsonl\"\ntext_key = \"body\"\n"
                                            "[[data.sources]]\npath = \"b.bin\"\n" +
                                            more,
                                    .environment = {},
                                    .overrides = {}});
  EXPECT_TRUE(loaded) << loaded.failure().message;
  return loaded ? loaded->settings : config::settings{};
}

TEST(from_settings, describes_a_llama_model) {
  const model::description d = description_from(settings_of(R"(
[model]
model_type = "llama"
vocab_size = 300
hidden_size = 24
intermediate_size = 40
num_hidden_layers = 3
num_attention_heads = 6
num_key_value_heads = 2
head_dim = 8
max_position_embeddings = 64
norm_eps = 1e-6
rope_theta = 5000.0
initializer_range = 0.03
dropout = 0.1
tie_word_embeddings = true
[model.rope_scaling]
factor = 8.0
low_freq_factor = 1.5
high_freq_factor = 4.5
original_max_position_embeddings = 32
[training]
seq_len = 16
global_batch_size = 8
)"));
  EXPECT_EQ(d.family, model::family::llama);
  EXPECT_EQ(d.vocabulary, 300u);
  EXPECT_EQ(d.width, 24u);
  EXPECT_EQ(d.inner, 40u);
  EXPECT_EQ(d.layers, 3u);
  EXPECT_EQ(d.heads, 6u);
  EXPECT_EQ(d.kv_heads, 2u);
  EXPECT_EQ(d.head_dim, 8u);
  EXPECT_EQ(d.positions, 64u);
  EXPECT_EQ(d.norm_epsilon, 1e-6);
  EXPECT_EQ(d.rope_theta, 5000.0);
  ASSERT_TRUE(d.rope_scaling);
  EXPECT_EQ(d.rope_scaling->factor, 8.0);
  EXPECT_EQ(d.rope_scaling->low_freq_factor, 1.5);
  EXPECT_EQ(d.rope_scaling->high_freq_factor, 4.5);
  EXPECT_EQ(d.rope_scaling->original_positions, 32u);
  EXPECT_EQ(d.initializer_range, 0.03);
  EXPECT_EQ(d.dropout, 0.1);
  EXPECT_TRUE(d.tied);
  EXPECT_FALSE(d.bias);
}

TEST(from_settings, follows_each_family_s_habits) {
  const std::string batch = "[training]\nglobal_batch_size = 8\n[model]\nmodel_type = ";
  const model::description gpt2 = description_from(settings_of(batch + "\"gpt2\"\n"));
  EXPECT_EQ(gpt2.family, model::family::gpt2);
  EXPECT_TRUE(gpt2.tied);
  EXPECT_TRUE(gpt2.bias);
  EXPECT_FALSE(gpt2.rope_scaling);
  const model::description plain =
      description_from(settings_of(batch + "\"gpt2\"\nbias = false\n"));
  EXPECT_FALSE(plain.bias);
  EXPECT_FALSE(description_from(settings_of(batch + "\"llama\"\n")).tied);
}

TEST(from_settings, passes_batch_schedule_and_optimizer_on) {
  const trainer_settings t = trainer_settings_from(settings_of(R"(
[training]
seq_len = 32
global_batch_size = 12
micro_batch_size = 2
steps = 90
seed = 77
max_norm = 0.75
skip_nonfinite = false
[parallelism]
virtual_ranks = 3
[optimizer]
lr = 2e-3
beta1 = 0.8
beta2 = 0.9
eps = 1e-7
weight_decay = 0.2
[lr_scheduler]
warmup_steps = 5
total_steps = 100
decay_ratio = 0.4
decay_type = "sqrt"
min_lr_factor = 0.05
)"));
  EXPECT_EQ(t.batch.global_batch, 12u);
  EXPECT_EQ(t.batch.virtual_ranks, 3u);
  EXPECT_EQ(t.batch.micro_batch, 2u);
  EXPECT_EQ(t.seq_len, 32u);
  EXPECT_EQ(t.seed, 77u);
  EXPECT_EQ(t.max_norm, 0.75);
  EXPECT_FALSE(t.skip_nonfinite);
  EXPECT_EQ(t.schedule.lr, 2e-3);
  EXPECT_EQ(t.schedule.warmup_steps, 5u);
  EXPECT_EQ(t.schedule.total_steps, 100u);
  EXPECT_EQ(t.schedule.decay_ratio, 0.4);
  EXPECT_EQ(t.schedule.shape, model::decay_shape::sqrt);
  EXPECT_EQ(t.schedule.min_factor, 0.05);
  EXPECT_EQ(t.adamw.beta1, 0.8);
  EXPECT_EQ(t.adamw.beta2, 0.9);
  EXPECT_EQ(t.adamw.epsilon, 1e-7);
  EXPECT_EQ(t.adamw.weight_decay, 0.2);
}

TEST(from_settings, knows_every_shape_of_decay) {
  using enum model::decay_shape;
  const std::vector<std::pair<std::string, model::decay_shape>> shapes = {
      {"linear", linear}, {"cosine", cosine}, {"sqrt", sqrt}, {"constant", constant}};
  for (const auto& [name, shape] : shapes) {
    const std::string text =
        "[training]\nglobal_batch_size = 8\n[lr_scheduler]\ndecay_type = \"" + name + "\"\n";
    EXPECT_EQ(trainer_settings_from(settings_of(text)).schedule.shape, shape) << name;
  }
}

TEST(from_settings, gives_training_all_sources_and_validation_its_own_in_order) {
  const config::settings s = settings_of(R"(
[data]
eod_mask_loss = true
eod_token = 256
[training]
seq_len = 32
global_batch_size = 8
seed = 9
[validation]
enable = true
path = "v.txt"
)");
  const model::data::dataset_options train = training_data_from(s);
  EXPECT_EQ(train.seq_len, 32u);
  EXPECT_EQ(train.vocabulary, 257u);
  EXPECT_TRUE(train.add_eos);
  EXPECT_TRUE(train.shuffle);
  EXPECT_EQ(train.seed, 9u);
  EXPECT_TRUE(train.eod_mask_loss);
  EXPECT_EQ(train.eod_token, 256u);
  ASSERT_EQ(train.sources.size(), 2u);
  EXPECT_EQ(train.sources[0].path, "a.jsonl");
  EXPECT_EQ(train.sources[0].format, model::data::data_format::jsonl);
  EXPECT_EQ(train.sources[0].text_key, "body");
  EXPECT_EQ(train.sources[1].path, "b.bin");
  EXPECT_EQ(train.sources[1].format, model::data::data_format::automatic);

  const model::data::dataset_options valid = validation_data_from(s);
  EXPECT_FALSE(valid.shuffle);
  EXPECT_EQ(valid.seq_len, 32u);
  EXPECT_TRUE(valid.eod_mask_loss);
  ASSERT_EQ(valid.sources.size(), 1u);
  EXPECT_EQ(valid.sources[0].path, "v.txt");
  EXPECT_EQ(valid.sources[0].text_key, "body");
}

TEST(from_settings, starts_as_many_threads_as_were_asked_for_and_at_least_one) {
  const std::string threads = "[training]\nglobal_batch_size = 8\n[compute]\nthreads = ";
  EXPECT_EQ(executor_from(settings_of(threads + "3\n"))->threads(), 3);
  EXPECT_GE(executor_from(settings_of(threads + "0\n"))->threads(), 1);
}

}  // namespace
}  // namespace troupe::actors
