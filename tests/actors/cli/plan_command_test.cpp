#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "actors/plan_text.hpp"
#include "config/base/json.hpp"
#include "tests/actors/cli/run_command.hpp"

namespace troupe::actors::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

outcome plan(const std::vector<std::string>& words) { return run_command(plan_command, words); }

class plan_command_test : public testing::Test {
 protected:
  plan_command_test() {
    std::ofstream(file) << "[[data.sources]]\npath = \"a\"\n"
                           "[model]\nmodel_type = \"gpt2\"\nvocab_size = 512\nhidden_size = 64\n"
                           "num_hidden_layers = 2\nnum_attention_heads = 2\n"
                           "[training]\nglobal_batch_size = 8\nseq_len = 32\n"
                           "[parallelism]\nvirtual_ranks = 8\n";
  }
  ~plan_command_test() override { std::remove(file.c_str()); }
  nlohmann::json json(std::vector<std::string> words) {
    words.insert(words.begin(), {file, "--json"});
    const outcome o = plan(words);
    EXPECT_EQ(o.code, 0) << o.err;
    const auto parsed = parse_json(o.out, "output");
    EXPECT_TRUE(parsed) << o.out;
    return parsed ? *parsed : nlohmann::json::object();
  }
  const std::string file = testing::TempDir() + "/plan_command_test.toml";
};

TEST_F(plan_command_test, prints_what_each_worker_does_keeps_and_sends) {
  const outcome o = plan({file, "--workers", "2"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.err, "");
  EXPECT_THAT(o.out, HasSubstr("worker-0            0-3      1"));
  EXPECT_THAT(o.out, HasSubstr("worker-1            4-7      1"));
  EXPECT_THAT(o.out, HasSubstr("1 of each block wanted, 1 possible"));
  EXPECT_THAT(o.out, HasSubstr("all members are in the domain this machine"));
  EXPECT_THAT(o.out, HasSubstr("activations"));
}

TEST_F(plan_command_test, copies_are_as_many_as_the_config_wants_unless_told_otherwise) {
  const std::string zero = "--fault_tolerance.backups=0";
  EXPECT_EQ(json({"--workers", "2"}).at("members")[0].at("backup_blocks"), 2);
  EXPECT_EQ(json({"--workers", "2", zero}).at("members")[0].at("backup_blocks"), 0);
  EXPECT_EQ(json({"--workers", "2", zero, "--backups", "1"}).at("members")[0].at("backup_blocks"),
            2);
}

TEST_F(plan_command_test, activations_follow_the_share_of_the_batch) {
  const nlohmann::json members = json({"--workers", "2", "--threads", "3,1"}).at("members");
  const auto bytes = [&](int i) {
    return members[static_cast<std::size_t>(i)].at("memory_bytes").at("activations").get<double>();
  };
  EXPECT_GT(bytes(1), 0);
  EXPECT_GT(bytes(0), bytes(1));
}

TEST_F(plan_command_test, says_who_is_a_spare) {
  const outcome o = plan({file, "--workers", "9"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("spare"));
  EXPECT_THAT(plan({file, "--workers", "8"}).out, Not(HasSubstr("spare")));
}

TEST_F(plan_command_test, json_has_the_figures_and_the_plan_itself) {
  const nlohmann::json j = json({"--workers", "3"});
  ASSERT_EQ(j.at("members").size(), 3u);
  std::uint64_t ranks = 0, elements = 0, backups = 0;
  for (const auto& m : j.at("members")) {
    ranks += m.at("virtual_ranks").get<std::uint64_t>();
    elements += m.at("primary_elements").get<std::uint64_t>();
    backups += m.at("backup_elements").get<std::uint64_t>();
    EXPECT_GT(m.at("sent_bytes_per_step").at("total").get<std::uint64_t>(), 0u);
    EXPECT_GE(m.at("memory_bytes").at("total").get<std::uint64_t>(),
              m.at("memory_bytes").at("moments").get<std::uint64_t>());
  }
  EXPECT_EQ(ranks, 8u);
  EXPECT_EQ(elements, backups);
  EXPECT_TRUE(j.at("exposed").get<bool>());
  const auto inside = parse_plan(j.at("plan").dump(), "plan");
  ASSERT_TRUE(inside) << inside.failure().message;
  EXPECT_EQ(inside->members.size(), 3u);
}

TEST_F(plan_command_test, settings_and_threads_count) {
  const nlohmann::json j =
      json({"--workers", "2", "--threads", "3,1", "--parallelism.virtual_ranks=4", "--backups=0"});
  EXPECT_EQ(j.at("virtual_ranks"), 4);
  EXPECT_EQ(j.at("members")[0].at("virtual_ranks"), 3);
  EXPECT_EQ(j.at("members")[0].at("threads"), 3);
  EXPECT_EQ(j.at("members")[0].at("backup_blocks"), 0);
  EXPECT_THAT(j.at("why_exposed").get<std::string>(), HasSubstr("this machine"));
}

TEST_F(plan_command_test, one_worker_sends_nothing) {
  const nlohmann::json j = json({});
  EXPECT_EQ(j.at("members")[0].at("sent_bytes_per_step").at("total"), 0);
  EXPECT_EQ(j.at("why_exposed"), "there is only one member");
}

TEST_F(plan_command_test, mistakes_are_told_with_the_right_exit_code) {
  EXPECT_EQ(plan({}).code, 64);
  EXPECT_EQ(plan({file, "--workers", "0"}).code, 64);
  const outcome threads = plan({file, "--workers", "2", "--threads", "1,2,3"});
  EXPECT_EQ(threads.code, 64);
  EXPECT_THAT(threads.err, HasSubstr("--threads lists 3 workers, --workers 2"));
  for (const char* wrong : {"", "x", "0", "1,", "2.5", "1,,1"}) {
    EXPECT_EQ(plan({file, "--workers", "2", "--threads", wrong}).code, 64) << wrong;
  }
  EXPECT_THAT(plan({file, "--wrokers", "2"}).err, HasSubstr("did you mean --workers?"));
  const outcome config = plan({file, "--training.stepps=1"});
  EXPECT_EQ(config.code, 78);
  EXPECT_THAT(config.err, HasSubstr("the nearest is training.steps"));
}

TEST_F(plan_command_test, help_has_examples) {
  const outcome o = plan({"--help"});
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, HasSubstr("troupe plan examples/gpt2-10m.toml --workers 4"));
}

}  // namespace
}  // namespace troupe::actors::cli
