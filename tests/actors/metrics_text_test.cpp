// Metrics that stay small: a strict reader, Prometheus' own checker, and a world in which members
// come and go.
#include "actors/metrics_text.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdio>

#include "actors/status_board.hpp"
#include "tests/actors/metrics_reader.hpp"
#include "tests/actors/worlds_to_see.hpp"

namespace troupe::actors {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::IsSubsetOf;
using testing::Not;

constexpr process_facts facts{.cpu_seconds = 12.5,
                              .resident_bytes = 4096,
                              .peak_bytes = 8192,
                              .open_files = 7,
                              .start_seconds = 1.7e9};

metrics_read read_metrics(const world_status& s) {
  return metrics_reader::read(metrics_text(s, facts));
}

TEST(metrics_text, passes_a_strict_reader_at_every_stage_of_a_run) {
  EXPECT_THAT(read_metrics(world_status{}).complaints, IsEmpty());
  EXPECT_THAT(read_metrics(world_to_see()).complaints, IsEmpty());
}

TEST(metrics_text, passes_the_checker_of_prometheus) {
  std::FILE* check =
      popen("command -v promtool >/dev/null || exit 99; promtool check metrics", "w");
  ASSERT_NE(check, nullptr);
  const std::string text = metrics_text(world_to_see(), facts);
  std::fwrite(text.data(), 1, text.size(), check);
  const int end = pclose(check);
  ASSERT_TRUE(WIFEXITED(end));
  if (WEXITSTATUS(end) == 99) GTEST_SKIP() << "promtool (Debian: prometheus) is not installed";
  EXPECT_EQ(WEXITSTATUS(end), 0);
}

TEST(metrics_text, holds_the_figures_of_the_snapshot) {
  const metrics_read m = read_metrics(world_to_see());
  EXPECT_EQ(m.series.at("troupe_train_step"), 120);
  EXPECT_EQ(m.series.at("troupe_train_steps_total"), 20);
  EXPECT_EQ(m.series.at("troupe_train_last_commit_timestamp_seconds"), 1'699'999'998);
  EXPECT_EQ(m.series.at("troupe_train_loss"), 4.125);
  EXPECT_EQ(m.series.at("troupe_step_duration_seconds_bucket{le=\"0.5\"}"), 1);
  EXPECT_EQ(m.series.at("troupe_step_phase_seconds_total{phase=\"forward\"}"), 1.5);
  EXPECT_EQ(m.series.at("troupe_model_flops_utilization_ratio"), 0.25);
  EXPECT_EQ(m.series.at("troupe_world_members{state=\"active\"}"), 2);
  EXPECT_EQ(m.series.at("troupe_member_up{member=\"1\"}"), 1);
  EXPECT_EQ(m.series.at("troupe_generations_total{cause=\"lost\"}"), 2);
  EXPECT_EQ(m.series.at("troupe_generations_total{cause=\"rollback\"}"), 0);
  EXPECT_EQ(m.series.at("troupe_member_losses_total{kind=\"heartbeat\"}"), 3);
  EXPECT_EQ(m.series.at("troupe_recovery_duration_seconds_count"), 1);
  EXPECT_EQ(m.series.at("troupe_recovery_duration_seconds_bucket{le=\"0.5\"}"), 0);
  EXPECT_EQ(m.series.at("troupe_unblock_duration_seconds_bucket{le=\"0.5\"}"), 1);
  EXPECT_EQ(m.series.at("troupe_comm_sent_bytes_total{lane=\"bulk\"}"), 2048);
  EXPECT_EQ(m.series.at("troupe_checkpoint_last_step"), 100);
  EXPECT_EQ(m.series.at("troupe_device_memory_bytes{member=\"0\",kind=\"parameters\"}"), 1024);
  EXPECT_EQ(m.series.at("process_open_fds"), 7);
}

TEST(metrics_text, what_is_not_known_yet_is_left_out_and_counters_start_at_0) {
  const metrics_read m = read_metrics(world_status{});
  EXPECT_FALSE(m.series.contains("troupe_train_loss"));
  EXPECT_FALSE(m.series.contains("troupe_train_last_commit_timestamp_seconds"));
  EXPECT_FALSE(m.series.contains("troupe_checkpoint_last_step"));
  EXPECT_EQ(m.series.at("troupe_train_steps_total"), 0);
  EXPECT_EQ(m.series.at("troupe_checkpoint_failures_total"), 0);
}

TEST(metrics_text, names_of_people_are_escaped_and_odd_values_have_a_form) {
  world_status s = world_to_see();
  s.run = "a \"b\" \\ c\nd";
  s.loss = std::numeric_limits<double>::quiet_NaN();
  s.grad_norm = std::numeric_limits<double>::infinity();
  const metrics_read m = read_metrics(s);
  EXPECT_THAT(m.complaints, IsEmpty());
  EXPECT_THAT(m.label_values.at("run"), Contains(s.run));
  EXPECT_TRUE(std::isnan(m.series.at("troupe_train_loss")));
}

// Ten rounds of a member lost and replaced by one from elsewhere, as in a bad week.
TEST(metrics_text, members_that_come_and_go_make_no_new_series_and_no_counter_goes_down) {
  manual_clock clock(noon);
  status_board board(clock);
  board.facts() = world_to_see();
  std::map<std::string, double> before;
  std::size_t most = 0;
  for (std::uint64_t round = 0; round < 10; ++round) {
    std::vector<member_status> members = world_to_see().members;
    members[1].host = "gpu" + std::to_string(40 + round);
    members[1].restarts = round + 1;
    board.plan(10 + round, "2 workers", members);
    board.sent(member_id{1}, incarnation{100 + round}, lane::bulk, 1000 - 50 * round);
    protocol::decision_record decided;
    decided.step = 121 + round;
    board.committed(decided, 0.25, false);
    if (round % 2 == 1) board.member_is(member_id{1}, member_state::lost);
    clock.advance(std::chrono::seconds(17));

    const metrics_read m = read_metrics(board.now());
    EXPECT_THAT(m.complaints, IsEmpty());
    for (const auto& [name, value] : before) {
      const bool counts = name.find("_total") != std::string::npos ||
                          name.find("_bucket") != std::string::npos ||
                          name.find("_count") != std::string::npos;
      if (counts) {
        EXPECT_GE(m.series.at(name), value) << name;
      }
    }
    before = m.series;
    most = std::max(most, m.series.size());
    EXPECT_EQ(m.series.at("troupe_member_up{member=\"1\"}"), round % 2 == 1 ? 0 : 1);
    if (round == 9) {
      std::set<std::string> keys;
      for (const auto& [key, values] : m.label_values) {
        keys.insert(key);
        if (key != "le") {
          EXPECT_LE(values.size(), 10U) << key;
        }
      }
      EXPECT_THAT(
          keys, IsSubsetOf({"version", "commit", "backends", "run", "model", "config_digest", "le",
                            "phase", "state", "member", "kind", "lane", "part", "cause"}));
      EXPECT_THAT(m.label_values.at("member"), testing::ElementsAre("0", "1"));
    }
  }
  EXPECT_EQ(most, read_metrics(world_to_see()).series.size());
}

TEST(metrics_text, the_reader_complains_about_what_is_wrong) {
  for (const char* wrong :
       {"a 1\n", "# HELP a x\n# TYPE a gauge\nb 1\n", "# HELP a x\n# TYPE a gauge\na{x=y} 1\n",
        "# HELP a x\n# TYPE a gauge\na 1\na 1\n", "# HELP a x\n# TYPE a counter\na 1\n",
        "# HELP a x\n# TYPE a gauge\na 1", "# HELP a x\n# TYPE a gauge\na one\n",
        "# HELP a x\n# TYPE a histogram\na_bucket{le=\"1\"} 2\n"
        "a_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n"}) {
    EXPECT_THAT(metrics_reader::read(wrong).complaints, Not(IsEmpty())) << wrong;
  }
}

}  // namespace
}  // namespace troupe::actors
