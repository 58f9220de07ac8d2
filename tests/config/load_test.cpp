// What people write, and what they are told: field case "config mistakes" for the file, the
// environment and the command line.
#include "config/load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "config/presets.hpp"

namespace troupe::config {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* sound = R"([[data.sources]]
path = "a.txt"
[training]
global_batch_size = 8
)";

using texts = std::vector<std::string>;

result<loaded> load_text(const std::string& text, texts overrides = {}, texts environment = {}) {
  return load({"run.toml", text, std::move(environment), std::move(overrides)});
}
settings good(const std::string& text, texts overrides = {}, texts environment = {}) {
  auto r = load_text(text, std::move(overrides), std::move(environment));
  EXPECT_TRUE(r) << r.failure().message;
  return r ? r->settings : settings{};
}
// The lines of the error.
texts complaints(const std::string& text, texts overrides = {}, texts environment = {}) {
  const auto r = load_text(text, std::move(overrides), std::move(environment));
  if (r) return {"it was accepted"};
  EXPECT_EQ(r.failure().code, exit_code::bad_config);
  texts lines(1);
  for (const char c : r.failure().message) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}
// `line` becomes line 5 of a sound file, in [training].
texts complaints_in_training(const std::string& line) {
  return complaints(std::string(sound) + line + "\n");
}

TEST(load, a_misspelt_key_is_an_error_with_file_line_key_and_nearest_key) {
  EXPECT_THAT(
      complaints_in_training("stepps = 10"),
      ElementsAre("run.toml:5: training.stepps: unknown key; the nearest is training.steps"));
}

TEST(load, a_right_key_in_the_wrong_table_is_told_its_table) {
  EXPECT_THAT(complaints_in_training("lr = 1e-4"),
              ElementsAre("run.toml:5: training.lr: misplaced key; its place is optimizer.lr"));
}

TEST(load, a_duplicate_key_is_an_error_with_both_lines) {
  EXPECT_THAT(complaints_in_training("global_batch_size = 9"),
              ElementsAre(AllOf(HasSubstr("run.toml:5: training.global_batch_size: duplicate key"),
                                HasSubstr("the first time in line 4"))));
}

TEST(load, a_duplicate_key_in_a_list_of_tables_is_found_in_its_own_entry) {
  EXPECT_THAT(
      complaints("[[data.sources]]\npath = \"a\"\n[[data.sources]]\npath = \"b\"\npath = \"c\"\n"
                 "[training]\nglobal_batch_size = 8\n"),
      ElementsAre(AllOf(HasSubstr("run.toml:5: data.sources.path: duplicate key"),
                        HasSubstr("the first time in line 4"))));
}

TEST(load, a_duplicate_table_is_an_error_with_both_lines) {
  EXPECT_THAT(complaints_in_training("[job]\n[training]\nsteps = 3")[0],
              AllOf(HasSubstr("run.toml:6: training: duplicate table: [training] stands twice"),
                    HasSubstr("the first time in line 3")));
}

TEST(load, a_duplicate_key_does_not_hide_the_other_problems) {
  EXPECT_THAT(complaints_in_training("seed = 1\nseed = 2\nstepps = 1\nseed = 3\nsteps = 0"),
              ElementsAre(HasSubstr("run.toml:6: training.seed: duplicate"),
                          HasSubstr("run.toml:7: training.stepps: unknown"),
                          HasSubstr("run.toml:8: training.seed: duplicate"),
                          HasSubstr("run.toml:9: training.steps: 0 is out of bounds")));
}

TEST(load, a_duplicate_value_of_several_lines_makes_no_second_complaint) {
  EXPECT_THAT(complaints("[[data.sources]]\npath = \"a\"\n[training]\nglobal_batch_size = 8\n"
                         "seed = [\n1\n]\nseed = [\n1\n]\n")[0],
              HasSubstr("run.toml:8: training.seed: duplicate"));
}

TEST(load, a_number_in_quotes_is_an_error) {
  EXPECT_THAT(
      complaints(std::string(sound) + "[optimizer]\nlr = \"1e-4\"\n"),
      ElementsAre("run.toml:6: optimizer.lr: \"1e-4\" is text in quotes, but this key takes "
                  "a number; write 1e-4 without quotes"));
  EXPECT_THAT(complaints_in_training("steps = \"1000\""),
              ElementsAre(HasSubstr("\"1000\" is text in quotes")));
}

TEST(load, a_whole_number_is_fine_where_a_float_belongs) {
  EXPECT_EQ(good(std::string(sound) + "max_norm = 2\n").training.max_norm, 2.0);
}

TEST(load, a_float_is_an_error_where_a_whole_number_belongs) {
  EXPECT_THAT(complaints_in_training("steps = 1e3"),
              ElementsAre(AllOf(HasSubstr("run.toml:5: training.steps: 1e3 is a float"),
                                HasSubstr("write 1000"))));
}

TEST(load, whole_numbers_may_be_written_as_toml_allows) {
  EXPECT_EQ(good(std::string(sound) + "steps = 1_000\n").training.steps, 1000);
}

TEST(load, negative_and_zero_values_are_out_of_bounds) {
  EXPECT_THAT(
      complaints_in_training("steps = -1\nseq_len = 0\nmicro_batch_size = 0\nmax_norm = -0.5"),
      ElementsAre(HasSubstr("training.steps: -1 is out of bounds, it must be at least 1"),
                  HasSubstr("training.seq_len: 0 is out of bounds"),
                  HasSubstr("training.micro_batch_size: 0 is out of bounds"),
                  HasSubstr("training.max_norm: -0.5 is out of bounds")));
}

TEST(load, a_batch_that_does_not_divide_is_refused_and_the_nearest_that_do_are_named) {
  EXPECT_THAT(
      complaints("[[data.sources]]\npath = \"a\"\n[training]\nglobal_batch_size = 10\n"
                 "[parallelism]\nvirtual_ranks = 3\n"),
      ElementsAre("run.toml:6: parallelism.virtual_ranks: 3 does not divide "
                  "training.global_batch_size = 10; the nearest that do: 2 and 5; the nearest "
                  "batch for it: 9 or 12"));
}

TEST(load, other_types_than_the_keys_are_refused) {
  EXPECT_THAT(complaints_in_training("steps = true")[0], HasSubstr("true is not a whole number"));
  EXPECT_THAT(complaints_in_training("steps = [1]")[0], HasSubstr("takes one value, not a list"));
  EXPECT_THAT(complaints_in_training("steps = {a = 1}")[0],
              HasSubstr("takes one value, not a table"));
  EXPECT_THAT(complaints_in_training("steps = 2020-01-01")[0], HasSubstr("2020-01-01 is not"));
  EXPECT_THAT(complaints_in_training("max_norm = nan")[0], HasSubstr("not a finite number"));
  EXPECT_THAT(complaints_in_training("skip_nonfinite = 1")[0], HasSubstr("not true or false"));
  EXPECT_THAT(complaints_in_training("dtype = 32")[0],
              HasSubstr("32 is not text; put it in quotes"));
  EXPECT_THAT(complaints(std::string("training = 3\n") + "data = 1\n")[0],
              HasSubstr("run.toml:1: training: is a table: write [training]"));
  EXPECT_THAT(complaints("[data]\nsources = \"a.txt\"\n[training]\nglobal_batch_size = 8\n"),
              ElementsAre(HasSubstr("run.toml:2: data.sources: is a list of tables: write "
                                    "[[data.sources]]")));
}

TEST(load, the_spelling_in_the_message_is_the_users_even_behind_other_letters) {
  EXPECT_THAT(complaints(std::string(sound) + "[job]\n\"n\u00e4me\" = 1\n")[0],
              HasSubstr("run.toml:6: job.n\u00e4me: unknown key"));
  EXPECT_THAT(complaints("training = { \"\u00e4\" = 1, steps =   5.0  } # five\n")[1],
              HasSubstr("training.steps: 5.0 is a float"));
}

TEST(load, all_problems_are_reported_together_in_the_order_of_the_file) {
  EXPECT_THAT(
      complaints("learning_rate = 1\n[training]\nsteps = 0\nblock_size = 4\n[checkpoint]\n"
                 "interval = 2\n",
                 {"training.stepss=1"}, {"TROUPE_OPTIMIZER_LRR=1"}),
      ElementsAre(HasSubstr("run.toml:1: learning_rate: unknown key; it is optimizer.lr here"),
                  HasSubstr("run.toml:3: training.steps: 0 is out of bounds"),
                  HasSubstr("run.toml:4: training.block_size: unknown key; it is "
                            "training.seq_len here"),
                  HasSubstr("run.toml:6: checkpoint.interval: known key, but not in this "
                            "version"),
                  HasSubstr("environment: TROUPE_OPTIMIZER_LRR: names no key; the nearest is "
                            "TROUPE_OPTIMIZER_LR"),
                  HasSubstr("command line: training.stepss: unknown key"),
                  HasSubstr("run.toml: data.sources: is required"),
                  HasSubstr("run.toml: training.global_batch_size: is required")));
}

TEST(load, text_that_is_no_toml_is_an_error_with_line_and_key) {
  EXPECT_THAT(complaints_in_training("steps = abc"),
              ElementsAre(HasSubstr("run.toml:5: training.steps: not valid TOML")));
  EXPECT_THAT(complaints_in_training("steps 5"),
              ElementsAre(HasSubstr("run.toml:5: not valid TOML")));
  EXPECT_THAT(complaints_in_training("steps = 99999999999999999999"),
              ElementsAre(HasSubstr("run.toml:5: training.steps: not valid TOML")));
  EXPECT_THAT(complaints(std::string(sound) + "[job]\nname = \"\xff\"\n")[0],
              HasSubstr("run.toml:6: job.name: not valid TOML"));
}

TEST(load, damaged_text_is_an_error_or_a_configuration_and_nothing_else) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::string whole = std::string(sound) +
                            "steps = 1_000\nmax_norm = 1e0\n[optimizer]\n"
                            "lr = 3e-4\nlr = \"x\"\n[model.rope_scaling]\nfactor = 8.0\n";
  const std::string letters = "[]{}=.,#\"'\\\n\t 0aZ_-+\x80\xff";
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    for (int n = 0; n < 4; ++n) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = letters[random() % letters.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        default:
          text.insert(at, whole, random() % whole.size(), random() % 12);
      }
      if (text.empty()) text.push_back('#');
    }
    SCOPED_TRACE(text);
    const auto r = load_text(text);
    const bool sensible =
        r ? r->settings.training.global_batch_size > 0 : !r.failure().message.empty();
    ASSERT_TRUE(sensible);
  }
}

TEST(load, a_file_that_cannot_be_read_is_named) {
  const auto missing = load({"no/such/file.toml", {}, {}, {}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.failure().code, exit_code::bad_config);
  EXPECT_THAT(missing.failure().message, HasSubstr("no/such/file.toml: cannot be read"));
  const auto folder = load({testing::TempDir(), {}, {}, {}});
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.failure().message, HasSubstr("is a folder"));
}

TEST(load, a_file_on_disk_is_read_and_names_the_run) {
  const std::string path = testing::TempDir() + "/my first run.toml";
  std::ofstream(path) << "\xEF\xBB\xBF[[data.sources]]\r\npath = \"a.txt\"\r\n"
                         "[training]\r\nglobal_batch_size = 8\r\n";
  const auto r = load({path, {}, {}, {}});
  std::filesystem::remove(path);
  ASSERT_TRUE(r) << r.failure().message;
  EXPECT_EQ(r->settings.job.name, "my_first_run");
  EXPECT_EQ(r->settings.job.run_dir, "outputs/my_first_run");
  EXPECT_EQ(r->settings.training.global_batch_size, 8);
}

TEST(load, layers_win_in_the_documented_order) {
  const std::string file = std::string(sound) + "seq_len = 300\n[model]\nflavor = \"124M\"\n";
  const texts environment{"HOME=/", "TROUPE_TRAINING_SEQ_LEN=400"};
  EXPECT_EQ(good(sound).training.seq_len, 2048);                         // default
  EXPECT_EQ(good(sound, {"model.flavor=124M"}).training.seq_len, 1024);  // preset
  EXPECT_EQ(good(file).training.seq_len, 300);                           // file
  EXPECT_EQ(good(file, {}, environment).training.seq_len, 400);          // environment
  EXPECT_EQ(good(file, {"training.seq_len=500"}, environment).training.seq_len,
            500);  // command line
}

TEST(load, every_value_knows_where_it_comes_from) {
  const auto r =
      load_text(std::string(sound) + "[model]\nflavor = \"124M\"\n",
                {"optimizer.lr=1e-3", "data.sources[0].name=x"}, {"TROUPE_TRAINING_SEED=5"});
  ASSERT_TRUE(r) << r.failure().message;
  const auto& o = r->origins;
  EXPECT_EQ(o.at("training.global_batch_size"), "run.toml:4");
  EXPECT_EQ(o.at("data.sources[0].path"), "run.toml:2");
  EXPECT_EQ(o.at("data.sources[0].name"), "command line");
  EXPECT_EQ(o.at("model.hidden_size"), "preset 124M");
  EXPECT_EQ(o.at("training.seed"), "TROUPE_TRAINING_SEED");
  EXPECT_EQ(o.at("optimizer.lr"), "command line");
  EXPECT_EQ(o.at("job.name"), "the file's name");
  EXPECT_FALSE(o.contains("training.max_norm"));
}

TEST(load, the_last_of_equal_overrides_counts) {
  EXPECT_EQ(good(sound, {"training.steps=300", "training.steps=400"}).training.steps, 400);
}

TEST(load, a_boolean_key_alone_means_true_and_others_need_a_value) {
  EXPECT_TRUE(good(sound, {"metrics.disable_color_printing"}).metrics.disable_color_printing);
  EXPECT_THAT(complaints(sound, {"training.steps"}),
              ElementsAre("command line: training.steps: needs a value: key=value"));
}

TEST(load, overrides_are_held_to_the_rules_of_the_file) {
  EXPECT_THAT(complaints(sound, {"training.steps=1e3"})[0],
              HasSubstr("command line: training.steps: 1e3 is a float"));
  EXPECT_THAT(complaints(sound, {"optimizer.lr='1e-3'"})[0], HasSubstr("text in quotes"));
  EXPECT_THAT(complaints(sound, {"training.block_size=4"})[0], HasSubstr("training.seq_len"));
  EXPECT_THAT(complaints(sound, {}, {"TROUPE_TRAINING_STEPS=0"})[0],
              HasSubstr("TROUPE_TRAINING_STEPS: training.steps: 0 is out of bounds"));
  EXPECT_THAT(complaints(sound, {}, {"TROUPE_CHECKPOINT_INTERVAL=5"})[0],
              HasSubstr("TROUPE_CHECKPOINT_INTERVAL: known key, but not in this version"));
}

TEST(load, overrides_are_utf8) {
  EXPECT_EQ(good(sound, {"job.description=\u00e4\U0001F600"}).job.description, "\u00e4\U0001F600");
  for (const std::string text : {"\xff", "a\x80", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xE2\x82"}) {
    EXPECT_THAT(complaints(sound, {"job.description=" + text}),
                ElementsAre("command line: job.description: is not valid UTF-8"));
  }
}

TEST(load, sources_can_be_set_from_the_command_line_as_a_whole_or_one_by_one) {
  const settings whole = good(sound, {"data.sources=[{path = \"x\"}, {path = \"y\"}]"});
  ASSERT_EQ(whole.data.sources.size(), 2u);
  EXPECT_EQ(whole.data.sources[1].path, "y");
  EXPECT_EQ(whole.data.sources[1].text_key, "text");
  EXPECT_EQ(good(sound, {"data.sources[0].path=z"}).data.sources[0].path, "z");
  EXPECT_THAT(complaints(sound, {"data.sources[1].path=z"})[0],
              HasSubstr("there are only 1 sources"));
  EXPECT_THAT(complaints(sound, {"data.sources.path=z"})[0], HasSubstr("data.sources[].path"));
  EXPECT_THAT(complaints(sound, {"data.sources[].path=z"})[0], HasSubstr("say which entry"));
  EXPECT_THAT(complaints(sound, {"data.sources=[{path = \"x\"}]\n[job]\nname = \"y\""})[0],
              HasSubstr("must stand in one line"));
}

TEST(load, a_table_in_a_higher_layer_replaces_the_lower_ones) {
  const auto r = load_text(std::string(sound) +
                               "[model.rope_scaling]\nfactor = 8\n"
                               "low_freq_factor = 1\nhigh_freq_factor = 4\n"
                               "original_max_position_embeddings = 8192\n",
                           {"model.rope_scaling={factor = 2, low_freq_factor = 1}"});
  ASSERT_FALSE(r);
  EXPECT_THAT(r.failure().message,
              AllOf(HasSubstr("model.rope_scaling.high_freq_factor: is required"),
                    HasSubstr("original_max_position_embeddings: is required")));
}

TEST(load, rope_scaling_copied_from_hugging_face_is_understood) {
  const settings s = good(std::string(sound) + R"([model.rope_scaling]
rope_type = "llama3"
factor = 8.0
low_freq_factor = 1.0
high_freq_factor = 4.0
original_max_position_embeddings = 8192
)");
  ASSERT_TRUE(s.model.rope_scaling);
  EXPECT_EQ(*s.model.rope_scaling, (rope_scaling{8, 1, 4, 8192}));
}

TEST(load, a_problem_across_keys_names_the_line_of_the_key) {
  EXPECT_THAT(
      complaints(std::string(sound) + "steps = 100\n[lr_scheduler]\nwarmup_steps = 150\n"),
      ElementsAre(HasSubstr("run.toml:7: lr_scheduler.warmup_steps: 150 is longer than the run "
                            "(training.steps = 100)")));
  EXPECT_THAT(
      complaints(std::string(sound) + "steps = 100\n"),
      ElementsAre(HasSubstr("run.toml (default): lr_scheduler.warmup_steps: 200 is longer")));
}

TEST(load, every_preset_loads_and_gives_a_whole_configuration) {
  ASSERT_EQ(presets().size(), 8u);
  for (const preset& p : presets()) {
    const settings s = good(sound, {"model.flavor=" + std::string(p.name)});
    EXPECT_GT(s.model.head_dim, 0) << p.name;
  }
  EXPECT_EQ(good(sound, {"model.flavor=70B"}).model.hidden_size, 8192);
  EXPECT_EQ(good(sound, {"model.flavor=1558M"}).model.num_attention_heads, 25);
}

TEST(load, the_gpt2_preset_has_the_parameters_in_its_name) {
  const auto m = good(sound, {"model.flavor=124M"}).model;
  const std::int64_t c = m.hidden_size;
  const std::int64_t layer =
      4 * c * c + 4 * c + 2 * c * m.intermediate_size + m.intermediate_size + c + 4 * c;
  const std::int64_t all =
      (m.vocab_size + m.max_position_embeddings) * c + m.num_hidden_layers * layer + 2 * c;
  EXPECT_EQ(all, 124439808);
}

TEST(load, an_unknown_preset_names_the_others) {
  EXPECT_THAT(complaints(sound, {"model.flavor=124m"})[0],
              AllOf(HasSubstr("there is no preset \"124m\""), HasSubstr("did you mean 124M?")));
  EXPECT_THAT(
      complaints(std::string(sound) + "[model]\nflavor = \"huge\"\n")[0],
      HasSubstr("run.toml:6: model.flavor: there is no preset \"huge\"; there are debugmodel"));
}

}  // namespace
}  // namespace troupe::config
