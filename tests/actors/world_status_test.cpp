#include "actors/world_status.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/actors/worlds_to_see.hpp"

namespace troupe::actors {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

TEST(world_status, its_json_holds_what_is_known) {
  const auto json = nlohmann::json::parse(to_json(world_to_see(), noon));
  EXPECT_EQ(json["run_id"], "00ff");
  EXPECT_EQ(json["state"], "training");
  EXPECT_EQ(json["since"], "2023-11-14T22:12:20.000Z");
  EXPECT_EQ(json["healthy"], true);
  EXPECT_EQ(json["generation"], 3);
  EXPECT_EQ(json["step"], 120);
  EXPECT_EQ(json["loss"], 4.125);
  EXPECT_EQ(json["eta_seconds"], 440);
  EXPECT_EQ(json["checkpoint"]["step"], 100);
  EXPECT_EQ(json["sent_bytes"]["bulk"], 2048);
  EXPECT_EQ(json["counters"]["steps"], 20);
  EXPECT_EQ(json["counters"]["recoveries"], 1);
  EXPECT_EQ(json["replaced_plans"]["lost"], 2);
  EXPECT_EQ(json["losses"]["heartbeat"], 3);
  ASSERT_EQ(json["members"].size(), 2U);
  const auto& m = json["members"][1];
  EXPECT_EQ(m["name"], "worker-1");
  EXPECT_EQ(m["phase"], "computing");
  EXPECT_NEAR(m["heartbeat_age_seconds"].get<double>(), 0.1, 1e-9);
  EXPECT_EQ(m["memory_bytes"]["parameters"], 1024);
  EXPECT_EQ(m["restarts"], 1);
}

TEST(world_status, has_the_same_keys_before_the_first_step) {
  const auto full = nlohmann::json::parse(to_json(world_to_see(), noon));
  const auto fresh = nlohmann::json::parse(to_json(world_status{}, noon));
  EXPECT_EQ(full.size(), fresh.size());
  for (const auto& [key, value] : full.items()) EXPECT_TRUE(fresh.contains(key)) << key;
  EXPECT_TRUE(fresh["loss"].is_null());
  EXPECT_TRUE(fresh["checkpoint"].is_null());
}

TEST(world_status, its_table_has_a_row_for_each_member_and_aligned_columns) {
  const std::string text = to_text(world_to_see(), noon);
  EXPECT_THAT(text, HasSubstr("demo (00ff)  training since 1m00s\n"));
  EXPECT_THAT(text, HasSubstr("step 120/1000  loss 4.1250  val_loss 4.5000"));
  EXPECT_THAT(text, HasSubstr("generation 3: 2 workers, 8 virtual ranks\n"));
  EXPECT_THAT(text, HasSubstr("last commit 2.0s ago"));
  EXPECT_THAT(text, HasSubstr("sent bulk 2.0 KiB"));
  const std::size_t header = text.find("  id  name");
  ASSERT_NE(header, std::string::npos);
  const std::size_t first = text.find('\n', header) + 1;
  const std::size_t second = text.find('\n', first) + 1;
  for (const char* column : {"name", "host", "state", "phase", "heard", "restarts"}) {
    const std::size_t at = text.find(column, header) - header;
    EXPECT_EQ(text[first + at - 1], ' ') << column;
    EXPECT_NE(text[first + at], ' ') << column;
    EXPECT_NE(text[second + at], ' ') << column;
  }
}

TEST(world_status, has_no_blank_at_the_end_of_a_line_and_says_what_is_missing) {
  world_status s;
  s.note = "one more member";
  s.state = run_state::waiting;
  const std::string text = to_text(s, noon);
  EXPECT_THAT(text, HasSubstr("waiting"));
  EXPECT_THAT(text, HasSubstr(": one more member\n"));
  EXPECT_THAT(text, HasSubstr("no commit yet  no checkpoint yet"));
  EXPECT_THAT(to_text(world_to_see(), noon), Not(HasSubstr(" \n")));
}

TEST(world_status, is_healthy_while_commits_are_recent) {
  world_status s = world_to_see();
  s.stall_seconds = 30;
  s.last_commit = noon;
  EXPECT_TRUE(healthy(s, noon + seconds(30)));
  EXPECT_FALSE(healthy(s, noon + seconds(31)));
  s.step_seconds = 60;  // slow steps: ten of them may be missed
  EXPECT_TRUE(healthy(s, noon + seconds(600)));
  EXPECT_FALSE(healthy(s, noon + seconds(601)));
}

TEST(world_status, before_the_first_commit_health_counts_from_the_present_state) {
  world_status s;
  s.stall_seconds = 30;
  s.since = noon;
  EXPECT_TRUE(healthy(s, noon + seconds(30)));
  EXPECT_FALSE(healthy(s, noon + seconds(31)));
  s.state = run_state::finished;
  EXPECT_TRUE(healthy(s, noon + seconds(1000)));
}

TEST(world_status, a_clock_that_jumped_back_makes_no_negative_age) {
  const auto json = nlohmann::json::parse(to_json(world_to_see(), noon - seconds(3600)));
  EXPECT_EQ(json["members"][0]["heartbeat_age_seconds"], 0);
}

}  // namespace
}  // namespace troupe::actors
