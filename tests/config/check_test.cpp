#include "config/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/options.hpp"

namespace troupe::config {
namespace {

using testing::HasSubstr;

settings small() {
  settings s = default_settings();
  reset_sources(s, 1);
  s.data.sources[0].path = "a.txt";
  s.training.global_batch_size = 12;
  return s;
}

template <class Change>
settings resolved(Change change) {
  settings s = small();
  change(s);
  auto r = resolve(s);
  EXPECT_TRUE(r) << r.failure().message;
  return r ? *r : settings{};
}
template <class Change>
std::string trouble(Change change) {
  settings s = small();
  change(s);
  const auto r = resolve(s);
  if (r) return "it was accepted";
  EXPECT_EQ(r.failure().code, exit_code::bad_config);
  return r.failure().message;
}
constexpr auto as_is = [](settings&) {};
constexpr auto gpt2 = [](settings& s) { s.model.model_type = model_family::gpt2; };

TEST(check, what_is_missing_is_required) {
  EXPECT_THAT(trouble([](settings& s) { s.data.sources.clear(); }),
              HasSubstr("data.sources: is required"));
  EXPECT_THAT(trouble([](settings& s) { s.training.global_batch_size = 0; }),
              HasSubstr("training.global_batch_size: is required"));
  EXPECT_THAT(trouble([](settings& s) { s.data.sources[0].path = ""; }),
              HasSubstr("data.sources[0].path: is required"));
}

TEST(check, settings_made_in_code_are_held_to_the_bounds_of_the_rows) {
  EXPECT_THAT(trouble([](settings& s) { s.training.micro_batch_size = 0; }),
              HasSubstr("training.micro_batch_size: 0 is out of bounds"));
  EXPECT_THAT(trouble([](settings& s) { s.optimizer.name = "SGD"; }), HasSubstr("optimizer.name"));
}

TEST(check, all_problems_come_together) {
  const std::string text = trouble([](settings& s) {
    s.parallelism.virtual_ranks = 5;
    s.validation.enable = true;
  });
  EXPECT_THAT(text, HasSubstr("parallelism.virtual_ranks: 5 does not divide"));
  EXPECT_THAT(text, HasSubstr("\nparallelism"));
  EXPECT_THAT(text, HasSubstr("validation.path: is required when validation.enable is true"));
}

TEST(check, the_vocabulary_follows_from_the_tokenizer) {
  EXPECT_EQ(resolved(as_is).model.vocab_size, 257);
  EXPECT_EQ(resolved(as_is).tokenizer.add_eos, true);
  EXPECT_EQ(resolved(as_is).data.eod_token, 256);
  const settings without = resolved([](settings& s) { s.tokenizer.add_eos = false; });
  EXPECT_EQ(without.model.vocab_size, 256);
  EXPECT_EQ(without.data.eod_token, -1);
}

TEST(check, a_vocabulary_of_256_has_no_room_for_the_end_of_text) {
  const settings s = resolved([](settings& c) { c.model.vocab_size = 256; });
  EXPECT_EQ(s.tokenizer.add_eos, false);
  EXPECT_THAT(trouble([](settings& c) {
                c.model.vocab_size = 256;
                c.tokenizer.add_eos = true;
              }),
              HasSubstr("model.vocab_size: 256 is too small: the byte tokenizer has 257 tokens"));
  EXPECT_THAT(trouble([](settings& c) { c.model.vocab_size = 100; }), HasSubstr("has 256 tokens"));
}

TEST(check, token_files_need_no_tokenizer) {
  const auto tokens = [](settings& s) {
    s.data.sources[0].path = "a.bin";
    s.model.vocab_size = 100;
  };
  EXPECT_EQ(resolved(tokens).model.vocab_size, 100);
  EXPECT_EQ(resolved(tokens).data.eod_token, -1);
}

TEST(check, masking_the_end_of_text_needs_to_know_it) {
  EXPECT_TRUE(resolved([](settings& s) { s.data.eod_mask_loss = true; }).data.eod_mask_loss);
  EXPECT_THAT(trouble([](settings& s) {
                s.data.eod_mask_loss = true;
                s.data.sources[0].path = "a.bin";
                s.model.vocab_size = 50257;
              }),
              HasSubstr("data.eod_mask_loss: needs to know the end-of-text token"));
  EXPECT_THAT(trouble([](settings& s) { s.data.eod_token = 257; }),
              HasSubstr("data.eod_token: 257 is not below model.vocab_size = 257"));
}

TEST(check, shapes_follow_the_family) {
  const settings llama = resolved(as_is);
  EXPECT_EQ(llama.model.intermediate_size, 1536);  // 8/3 x 512 = 1365, up to 256s
  EXPECT_EQ(llama.model.num_key_value_heads, 8);
  EXPECT_EQ(llama.model.head_dim, 64);
  EXPECT_EQ(llama.model.max_position_embeddings, 2048);
  EXPECT_EQ(llama.model.tie_word_embeddings, false);
  EXPECT_EQ(llama.model.bias, false);
  const settings other = resolved(gpt2);
  EXPECT_EQ(other.model.intermediate_size, 2048);
  EXPECT_EQ(other.model.tie_word_embeddings, true);
  EXPECT_EQ(other.model.bias, true);
}

TEST(check, heads_divide) {
  EXPECT_THAT(trouble([](settings& s) { s.model.num_attention_heads = 7; }),
              HasSubstr("model.num_attention_heads: 7 heads do not divide hidden_size = 512"));
  EXPECT_THAT(trouble([](settings& s) { s.model.num_key_value_heads = 3; }),
              HasSubstr("model.num_key_value_heads: 3 does not divide num_attention_heads = 8"));
  EXPECT_THAT(trouble([](settings& s) { s.model.head_dim = 33; }), HasSubstr("33 is odd"));
  EXPECT_THAT(trouble([](settings& s) { s.model.num_attention_heads = 1; }),
              HasSubstr("heads of 512 elements are not supported"));
}

TEST(check, what_belongs_to_one_family_is_refused_in_the_other) {
  EXPECT_THAT(trouble([](settings& s) { s.model.bias = true; }),
              HasSubstr("model.bias: the llama family has no biases"));
  EXPECT_THAT(trouble([](settings& s) {
                gpt2(s);
                s.model.rope_scaling = {8, 1, 4, 8192};
              }),
              HasSubstr("model.rope_scaling: the gpt2 family has no rotary embedding"));
  EXPECT_THAT(trouble([](settings& s) {
                gpt2(s);
                s.model.num_key_value_heads = 4;
              }),
              HasSubstr("shares no key/value heads"));
  EXPECT_THAT(trouble([](settings& s) {
                gpt2(s);
                s.model.head_dim = 32;
              }),
              HasSubstr("8 heads x 32 is not hidden_size = 512"));
}

TEST(check, scaling_needs_its_long_wavelengths_above_its_short_ones) {
  EXPECT_THAT(trouble([](settings& s) {
                s.model.rope_scaling = {8, 4, 4, 8192};
              }),
              HasSubstr("low_freq_factor: 4 is not below high_freq_factor = 4"));
}

TEST(check, a_window_is_no_longer_than_the_positions) {
  EXPECT_THAT(
      trouble([](settings& s) { s.model.max_position_embeddings = 1024; }),
      HasSubstr("training.seq_len: 2048 is longer than model.max_position_embeddings = 1024"));
}

TEST(check, virtual_ranks_are_the_largest_divisor_up_to_16) {
  for (const auto& [batch, ranks] : {std::pair{1, 1},
                                     {8, 8},
                                     {12, 12},
                                     {16, 16},
                                     {17, 1},
                                     {24, 12},
                                     {32, 16},
                                     {34, 2},
                                     {480, 16},
                                     {30, 15}}) {
    EXPECT_EQ(default_virtual_ranks(batch), ranks) << batch;
    EXPECT_EQ(resolved([b = batch](settings& s) {
                s.training.global_batch_size = b;
              }).parallelism.virtual_ranks,
              ranks);
  }
}

TEST(check, a_refused_number_of_virtual_ranks_names_the_nearest_divisors) {
  EXPECT_THAT(trouble([](settings& s) { s.parallelism.virtual_ranks = 5; }),
              HasSubstr("the nearest that do: 4 and 6; the nearest batch for it: 10 or 15"));
  EXPECT_THAT(trouble([](settings& s) { s.parallelism.virtual_ranks = 13; }),
              HasSubstr("the nearest that do: 12; the nearest batch for it: 13"));
  EXPECT_THAT(trouble([](settings& s) {
                s.training.global_batch_size = 7;
                s.parallelism.virtual_ranks = 4;
              }),
              HasSubstr("the nearest that do: 1 and 7"));
}

TEST(check, a_micro_batch_is_at_most_the_whole_batch) {
  EXPECT_EQ(
      resolved([](settings& s) { s.training.micro_batch_size = 64; }).training.micro_batch_size,
      12);
  EXPECT_EQ(resolved(as_is).validation.micro_batch_size, 8);
}

TEST(check, warm_up_and_fall_fit_into_the_curve) {
  EXPECT_EQ(resolved(as_is).lr_scheduler.total_steps, 10000);
  EXPECT_THAT(
      trouble([](settings& s) { s.training.steps = 199; }),
      HasSubstr("lr_scheduler.warmup_steps: 200 is longer than the run (training.steps = 199)"));
  EXPECT_EQ(resolved([](settings& s) { s.training.steps = 200; }).training.steps, 200);
  // A run that stops early on a longer curve.
  EXPECT_EQ(resolved([](settings& s) {
              s.training.steps = 10;
              s.lr_scheduler.total_steps = 1000;
            }).training.steps,
            10);
  EXPECT_THAT(trouble([](settings& s) { s.lr_scheduler.total_steps = 100; }),
              HasSubstr("longer than the rate's curve (lr_scheduler.total_steps = 100)"));
  EXPECT_THAT(trouble([](settings& s) { s.lr_scheduler.decay_ratio = 0.99; }),
              HasSubstr("lr_scheduler.decay_ratio: 9900 falling steps after 200 of warm-up"));
}

TEST(check, names_of_folders_stay_where_they_belong) {
  EXPECT_EQ(resolved([](settings& s) { s.job.name = "a"; }).job.run_dir, "outputs/a");
  EXPECT_EQ(resolved([](settings& s) { s.job.run_dir = "/x/{name}/y"; }).job.run_dir, "/x/run/y");
  for (const char* name : {"a/b", "..", ".hidden", "a b"}) {
    EXPECT_THAT(trouble([&](settings& s) { s.job.name = name; }),
                HasSubstr("is no name for a folder"))
        << name;
  }
  for (const char* folder : {"/abs", "..", "a/../../b"}) {
    EXPECT_THAT(trouble([&](settings& s) { s.checkpoint.folder = folder; }),
                HasSubstr("is not below the run directory"))
        << folder;
  }
}

TEST(check, validation_measures_something) {
  EXPECT_THAT(trouble([](settings& s) { s.validation.steps = 0; }),
              HasSubstr("0 measures nothing"));
  EXPECT_EQ(resolved([](settings& s) { s.validation.steps = -1; }).validation.steps, -1);
}

TEST(check, resolving_twice_changes_nothing) {
  for (const bool other : {false, true}) {
    const settings once = resolved([&](settings& s) {
      if (other) gpt2(s);
    });
    const auto twice = resolve(once);
    ASSERT_TRUE(twice) << twice.failure().message;
    const auto a = list_settings(once), b = list_settings(*twice);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].value, b[i].value) << a[i].key;
  }
}

}  // namespace
}  // namespace troupe::config
