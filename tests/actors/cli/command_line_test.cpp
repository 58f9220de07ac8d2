// The words behind a command, as people mix them.
#include "actors/cli/command_line.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "actors/cli/commands.hpp"

namespace troupe::actors::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

split_arguments split(const std::vector<std::string>& words) { return take_overrides(words); }

TEST(take_overrides, takes_each_form_of_a_setting_and_leaves_the_rest_in_order) {
  const auto s = split({"run.toml", "--training.steps=5", "--quiet", "--optimizer.lr", "1e-3",
                        "--run-dir", "out", "--set", "training.seed=1"});
  EXPECT_THAT(s.overrides, ElementsAre("training.steps=5", "optimizer.lr=1e-3"));
  EXPECT_THAT(s.rest,
              ElementsAre("run.toml", "--quiet", "--run-dir", "out", "--set", "training.seed=1"));
}

TEST(take_overrides, a_switch_does_not_take_the_file_behind_it) {
  const auto s = split({"--data.shuffle", "run.toml"});
  EXPECT_THAT(s.overrides, ElementsAre("data.shuffle"));
  EXPECT_THAT(s.rest, ElementsAre("run.toml"));
  EXPECT_THAT(split({"--data.shuffle=false", "run.toml"}).overrides,
              ElementsAre("data.shuffle=false"));
}

TEST(take_overrides, a_value_may_hold_an_equals_sign_or_begin_with_a_minus) {
  EXPECT_THAT(split({"--job.description", "a=b"}).overrides, ElementsAre("job.description=a=b"));
  EXPECT_THAT(split({"--validation.steps", "-1"}).overrides, ElementsAre("validation.steps=-1"));
  EXPECT_THAT(split({"--job.description=a=b"}).overrides, ElementsAre("job.description=a=b"));
}

TEST(take_overrides, a_setting_without_a_value_stays_alone_so_that_it_is_refused_by_name) {
  EXPECT_THAT(split({"--training.steps", "--quiet"}).overrides, ElementsAre("training.steps"));
  EXPECT_THAT(split({"--training.steps"}).overrides, ElementsAre("training.steps"));
}

TEST(take_overrides, leaves_plain_options_and_values_with_dots_alone) {
  const auto s = split({"--seed=1.5", "--quiet", "file.toml", "-a.b", "--x"});
  EXPECT_THAT(s.overrides, IsEmpty());
  EXPECT_EQ(s.rest.size(), 5u);
}

class a_command : public testing::Test {
 protected:
  a_command() : path(testing::TempDir() + "/command_line_test.toml") {
    std::ofstream(testing::TempDir() + "/command_line_test.txt") << "some text to train on";
    std::ofstream(path)
        << "[[data.sources]]\npath = \"" << testing::TempDir()
        << "/command_line_test.txt\"\n[training]\nglobal_batch_size = 2\n"
        << "seq_len = 4\n[model]\nhidden_size = 16\nnum_attention_heads = 2\n"
        << "num_hidden_layers = 1\nintermediate_size = 16\n[lr_scheduler]\nwarmup_steps = 0\n";
  }
  ~a_command() override {
    std::filesystem::remove(path);
    std::filesystem::remove(testing::TempDir() + "/command_line_test.txt");
  }
  struct outcome {
    int code;
    std::string out, err;
  };
  static outcome run(int (*command)(arguments, std::ostream&, std::ostream&),
                     const std::vector<std::string>& words) {
    std::ostringstream out, err;
    const int code = command(words, out, err);
    return {code, out.str(), err.str()};
  }
  std::string path;
};

TEST_F(a_command, accepts_settings_before_and_behind_the_file) {
  const std::vector<std::vector<std::string>> ways = {
      {"--set", "training.steps=5", path, "--dry-run"},
      {path, "--set", "training.steps=5", "--dry-run"},
      {"--training.steps=5", path, "--dry-run"},
      {"--training.steps", "5", path, "--dry-run"},
      {"--set=training.steps=5", "--data.shuffle", path, "--dry-run"},
      {"--set", "training.steps=7", "--set", "training.steps=5", path, "--dry-run"}};
  for (const auto& words : ways) {
    SCOPED_TRACE(testing::PrintToString(words));
    const outcome o = run(train_command, words);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.out, HasSubstr("steps = 5"));
  }
}

TEST_F(a_command, bench_accepts_them_too) {
  const outcome o = run(bench_command, {"step", "--set", "training.stepps=5", path});
  EXPECT_EQ(o.code, 78);  // and not 64: the file was found
  EXPECT_THAT(o.err, HasSubstr("training.stepps"));
}

TEST_F(a_command, ends_with_64_and_the_nearest_option) {
  const outcome o = run(train_command, {path, "--quite"});
  EXPECT_EQ(o.code, 64);
  EXPECT_EQ(o.out, "");
  EXPECT_THAT(o.err, HasSubstr("unknown option --quite; did you mean --quiet? (see troupe train"));
  EXPECT_EQ(std::ranges::count(o.err, '\n'), 1);
  EXPECT_EQ(run(train_command, {}).code, 64);
  EXPECT_EQ(run(train_command, {path, "another.toml"}).code, 64);
  const outcome resume = run(train_command, {path, "--resume", "yes"});
  EXPECT_EQ(resume.code, 64);
  EXPECT_THAT(resume.err, HasSubstr("auto, never or a step, not \"yes\""));
}

TEST_F(a_command, help_wins_over_mistakes_and_shows_examples) {
  const outcome o = run(train_command, {"--quite", "--help"});
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.err, "");
  EXPECT_THAT(o.out, HasSubstr("troupe train examples/quickstart.toml"));
}

}  // namespace
}  // namespace troupe::actors::cli
