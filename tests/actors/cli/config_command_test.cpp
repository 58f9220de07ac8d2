#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/actors/cli/run_command.hpp"

namespace troupe::actors::cli {
namespace {

using testing::HasSubstr;

outcome run(const std::vector<std::string>& words) { return run_command(config_command, words); }

class config_command_test : public testing::Test {
 protected:
  std::string file(const std::string& more = "") {
    const std::string path = testing::TempDir() + "/config_command_test.toml";
    std::ofstream(path) << "[[data.sources]]\npath = \"a\"\n[training]\nglobal_batch_size = 8\n"
                        << more;
    return path;
  }
  void TearDown() override {
    std::filesystem::remove(testing::TempDir() + "/config_command_test.toml");
  }
};

TEST_F(config_command_test, checks_a_valid_file) {
  const outcome o = run({"check", file()});
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, HasSubstr("a valid configuration"));
  EXPECT_EQ(o.err, "");
}

TEST_F(config_command_test, says_once_what_is_wrong_with_a_file) {
  const outcome o = run({"check", file("stepps = 1\n")});
  EXPECT_EQ(o.code, 78);
  EXPECT_EQ(o.out, "");
  EXPECT_THAT(o.err,
              HasSubstr(".toml:5: training.stepps: unknown key; the nearest is training.steps"));
}

TEST_F(config_command_test, shows_what_can_be_fed_back) {
  const outcome first = run({"show", file(), "--training.steps=500", "--set", "training.seed=7"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("steps = 500  # command line"));
  EXPECT_THAT(first.out, HasSubstr("seed = 7  # command line"));
  std::ofstream(testing::TempDir() + "/config_command_test.toml") << first.out;
  const outcome second = run({"check", testing::TempDir() + "/config_command_test.toml"});
  EXPECT_EQ(second.code, 0) << second.err;
}

TEST_F(config_command_test, shows_json) {
  const outcome o = run({"show", "--json", file()});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("\"global_batch_size\": 8"));
}

TEST_F(config_command_test, a_setting_does_not_swallow_the_file_behind_it) {
  EXPECT_EQ(run({"check", "--set", "training.steps=500", file()}).code, 0);
}

TEST_F(config_command_test, explains_keys_and_refuses_unknown_ones) {
  EXPECT_THAT(run({"explain", "training.steps"}).out, HasSubstr("default 10000"));
  EXPECT_THAT(run({"explain"}).out, HasSubstr("[optimizer]"));
  const outcome o = run({"explain", "training.stepps"});
  EXPECT_EQ(o.code, 64);
  EXPECT_THAT(o.err, HasSubstr("the nearest is training.steps"));
}

TEST_F(config_command_test, a_wrong_command_line_ends_with_64_and_the_nearest_word) {
  const outcome option = run({"show", file(), "--jsno"});
  EXPECT_EQ(option.code, 64);
  EXPECT_THAT(option.err, HasSubstr("unknown option --jsno; did you mean --json?"));
  const outcome action = run({"shwo", file()});
  EXPECT_EQ(action.code, 64);
  EXPECT_THAT(action.err, HasSubstr("did you mean show?"));
  EXPECT_EQ(run({}).code, 64);
  EXPECT_EQ(run({"show"}).code, 64);
  EXPECT_EQ(run({"reference", "--training.steps=1"}).code, 64);
  EXPECT_EQ(run({"check", file(), "--json"}).code, 64);
}

TEST_F(config_command_test, help_goes_to_the_output) {
  const outcome o = run({"show", "--help"});
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, HasSubstr("troupe config"));
  EXPECT_EQ(o.err, "");
}

}  // namespace
}  // namespace troupe::actors::cli
