// What is refused before anything starts. Whole scenarios on real processes:
// tests/examples/chaos_test.sh.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "actors/cli/commands.hpp"

namespace troupe::actors::cli {
namespace {

using testing::HasSubstr;

class chaos_command_test : public testing::Test {
 protected:
  // The command starts the program that it is a part of, and that is this test: a scenario that is
  // not refused must not start test after test.
  static void SetUpTestSuite() {
    constexpr const char* started = "IN_CHAOS_COMMAND_TEST";
    if (std::getenv(started) != nullptr) _exit(1);
    setenv(started, "1", 1);
  }
  void SetUp() override {
    char name[] = "/tmp/troupe-chaos-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    std::ofstream(folder_ / "text.txt") << std::string(4000, 'a');
    std::ofstream(folder_ / "tiny.toml")
        << "[model]\nmodel_type = \"llama\"\nhidden_size = 16\nintermediate_size = 32\n"
           "num_hidden_layers = 1\nnum_attention_heads = 2\n[[data.sources]]\npath = \""
        << (folder_ / "text.txt").string()
        << "\"\n[training]\nseq_len = 16\nglobal_batch_size = 4\nsteps = "
           "50\n[lr_scheduler]\nwarmup_steps = 5\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  int chaos(const std::string& scenario) {
    std::ofstream(folder_ / "s.toml") << "schema = 1\nname = \"x\"\n" << scenario;
    std::ostringstream out, err;
    const int code =
        chaos_command(std::vector<std::string>{(folder_ / "s.toml").string(), "--run-dir",
                                               (folder_ / "run").string()},
                      out, err);
    err_ = err.str();
    EXPECT_FALSE(std::filesystem::exists(folder_ / "run")) << "something was started";
    return code;
  }

  std::filesystem::path folder_;
  std::string err_;
};

const std::string run = "[run]\nconfig = \"tiny.toml\"\n";

TEST_F(chaos_command_test, refuses_a_scenario_that_says_nothing_sensible) {
  EXPECT_EQ(chaos(run + "[quiet]\nat_stp = 3\n"), 78);
  EXPECT_THAT(err_,
              HasSubstr("s.toml:6: quiet.at_stp: there is no such key; did you mean at_step"));
}

TEST_F(chaos_command_test, refuses_a_fault_at_a_point_that_nobody_comes_by_yet) {
  EXPECT_EQ(chaos("[[fault]]\nid = \"a\"\nkind = \"kill\"\ntarget = \"m0\"\nat_step = 2\n"
                  "at_point = \"save-begin\"\n" +
                  run),
            78);
  EXPECT_THAT(err_, HasSubstr("save-begin"));
}

TEST_F(chaos_command_test, refuses_what_would_come_behind_the_last_step) {
  EXPECT_EQ(chaos("[[fault]]\nid = \"a\"\nkind = \"kill\"\ntarget = \"m0\"\nat_step = 51\n" + run),
            78);
  EXPECT_THAT(err_, HasSubstr("fault a comes at step 51; training.steps is 50"));
  EXPECT_EQ(chaos(run + "[quiet]\nat_step = 45\nprogress = 10\n"), 78);
  EXPECT_THAT(err_, HasSubstr("quiet begins at step 45 and wants 10 more"));
}

TEST_F(chaos_command_test, passes_on_what_is_wrong_with_the_config) {
  EXPECT_EQ(chaos("[run]\nconfig = \"none.toml\"\n"), 78);
  EXPECT_THAT(err_, HasSubstr("none.toml"));
  EXPECT_EQ(chaos(run + "set = { \"training.stepps\" = 3 }\n"), 78);
  EXPECT_THAT(err_, HasSubstr("training.steps"));
}

TEST_F(chaos_command_test, wants_a_scenario) {
  std::ostringstream out, err;
  EXPECT_EQ(chaos_command({}, out, err), 64);
  EXPECT_EQ(chaos_command(std::vector<std::string>{"none.toml"}, out, err), 78);
}

}  // namespace
}  // namespace troupe::actors::cli
