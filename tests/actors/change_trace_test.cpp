#include "actors/change_trace.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace troupe::actors {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

change_trace a_recovery() {
  change_trace t;
  t.run = "364d0d93";
  t.number = 7;
  t.reason = "lost worker-2: its link broke";
  t.lost = {{"worker-2", "its link broke", 10.0, 10.5}};
  t.marks = {{"lost", "worker-2", 10.5},       {"collecting", "worker-0", 10.501},
             {"promised", "worker-0", 10.51},  {"promised", "worker-1", 10.54},
             {"published", "worker-0", 10.56}, {"adopted", "worker-0", 10.57},
             {"ready", "worker-1", 10.6},      {"ready", "worker-0", 10.59},
             {"go", "worker-0", 10.61},        {"committed", "worker-0", 10.7}};
  return t;
}
nlohmann::json slices(const change_trace& t) {
  nlohmann::json all = nlohmann::json::array();
  const auto whole = nlohmann::json::parse(to_json(t));
  for (const auto& e : whole["traceEvents"]) {
    if (e["ph"] == "X") all.push_back(e);
  }
  return all;
}

TEST(change_trace, phases_follow_one_another_from_the_last_sign_of_life_to_the_first_step) {
  std::vector<std::string> names;
  double at = 10e6;
  for (const auto& slice : slices(a_recovery())) {
    if (slice["tid"] != 0) continue;
    names.push_back(slice["name"]);
    EXPECT_NEAR(slice["ts"].get<double>(), at, 1);
    at += slice["dur"].get<double>();
  }
  EXPECT_NEAR(at, 10.7e6, 1);
  EXPECT_THAT(names, ElementsAre("notice", "begin", "collect", "publish", "adopt", "get ready",
                                 "begin steps", "first step"));
}

TEST(change_trace, each_member_has_a_row_with_its_name_and_who_was_lost_says_how) {
  std::map<std::string, int> rows;
  int promises = 0;
  const auto parsed = nlohmann::json::parse(to_json(a_recovery()));
  for (const auto& e : parsed["traceEvents"]) {
    if (e["ph"] == "M" && e["name"] == "thread_name") rows[e["args"]["name"]] = e["tid"];
    if (e["name"] == "promised") ++promises;
    if (e["name"] == "lost") {
      EXPECT_EQ(e["tid"], rows["worker-2"]);
      EXPECT_EQ(e["args"]["words"], "its link broke");
    }
    EXPECT_TRUE(e.contains("pid"));
  }
  EXPECT_EQ(rows.size(), 4u);
  EXPECT_EQ(promises, 2);
  EXPECT_EQ(parsed["plan"], 7);
}

TEST(change_trace, what_is_not_known_leaves_its_phase_out_and_nothing_runs_backwards) {
  change_trace t = a_recovery();
  t.lost[0].heard = 0;
  std::erase_if(t.marks, [](const auto& m) { return m.what == "promised" || m.what == "go"; });
  double end = 0;
  for (const auto& slice : slices(t)) {
    EXPECT_GE(slice["dur"].get<double>(), 0);
    EXPECT_GE(slice["ts"].get<double>(), end - 1);
    end = slice["ts"].get<double>() + slice["dur"].get<double>();
  }
  EXPECT_NEAR(end, 10.7e6, 1);
  t.marks.clear();
  t.lost.clear();
  EXPECT_THAT(slices(t), IsEmpty());
}

TEST(change_trace, is_named_after_its_plan_and_only_a_number_of_them_is_kept) {
  change_trace t = a_recovery();
  EXPECT_EQ(file_of(t), "recovery-7.json");
  t.lost.clear();
  EXPECT_EQ(file_of(t), "change-7.json");
  const std::vector<std::string> there{"change-10.json", "recovery-9.json", "notes.json",
                                       "change-8.json",  "change-x.json",   "recovery-7.json"};
  EXPECT_THAT(surplus_traces(there, 2), ElementsAre("recovery-7.json", "change-8.json"));
  EXPECT_THAT(surplus_traces(there, 4), IsEmpty());
}

}  // namespace
}  // namespace troupe::actors
