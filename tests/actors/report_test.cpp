// report.json is read by scripts: its fields are a promise.
#include "actors/report.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace troupe::actors {
namespace {

report full_report() {
  report r;
  r.version = "troupe 1";
  r.exit = 75;
  r.steps = 12;
  r.final_loss = 1.0 / 3;
  r.val_loss = 2.5;
  r.weights_hash = std::string(32, 'a');
  r.state_hash = std::string(32, 'b');
  r.tokens_per_second = 1000.5;
  r.utilization = 0.5;
  r.flops_per_token = 6e6;
  r.peak_flops = 1e11;
  r.peak_source = "measured";
  r.goodput = 900;
  r.effective_time_ratio = 0.9;
  r.skipped_steps = 1;
  r.steps_redone = 2;
  r.committed_steps_lost = 5;
  r.recoveries.push_back({.id = 4,
                          .from = 3,
                          .to = 4,
                          .lost = {"worker-1"},
                          .step_redone = true,
                          .step = 11,
                          .unblock_ms = 120.5,
                          .recover_ms = 800,
                          .noticed = 9,
                          .reason = "lost worker-1"});
  r.generations = 3;
  r.world_min = 2;
  r.world_max = 4;
  r.bytes_sent = 777;
  r.peak_memory_bytes = {{"worker-0", 12345}, {"worker-1", 6}};
  r.peak_activation_bytes = {{"worker-0", 678}};
  r.seconds = 60.25;
  return r;
}

TEST(report, has_every_field_and_no_other) {
  const auto json = nlohmann::json::parse(to_json(full_report()));
  std::set<std::string> found;
  for (const auto& [name, value] : json.items()) found.insert(name);
  const std::set<std::string> promised = {"version",
                                          "exit",
                                          "steps",
                                          "final_loss",
                                          "val_loss",
                                          "weights_hash",
                                          "state_hash",
                                          "seconds",
                                          "tokens_per_second",
                                          "goodput",
                                          "recoveries",
                                          "model_flops_utilization",
                                          "peak_flops",
                                          "peak_source",
                                          "flops_per_token",
                                          "generations",
                                          "flops_formula",
                                          "effective_time_ratio",
                                          "steps_redone",
                                          "skipped_steps",
                                          "committed_steps_lost",
                                          "world_min",
                                          "world_max",
                                          "peak_memory_bytes",
                                          "bytes_sent",
                                          "peak_activation_bytes"};
  EXPECT_EQ(found, promised);
}

TEST(report, holds_what_was_measured) {
  const auto json = nlohmann::json::parse(to_json(full_report()));
  EXPECT_EQ(json["version"], "troupe 1");
  EXPECT_EQ(json["exit"], 75);
  EXPECT_EQ(json["steps"], 12);
  EXPECT_EQ(json["final_loss"].get<double>(), 1.0 / 3);
  EXPECT_EQ(json["val_loss"], 2.5);
  EXPECT_EQ(json["weights_hash"], std::string(32, 'a'));
  EXPECT_EQ(json["state_hash"], std::string(32, 'b'));
  EXPECT_EQ(json["tokens_per_second"], 1000.5);
  EXPECT_EQ(json["model_flops_utilization"], 0.5);
  EXPECT_EQ(json["flops_per_token"], 6e6);
  EXPECT_EQ(json["peak_flops"], 1e11);
  EXPECT_EQ(json["peak_source"], "measured");
  EXPECT_EQ(json["goodput"], 900);
  EXPECT_EQ(json["effective_time_ratio"], 0.9);
  EXPECT_EQ(json["skipped_steps"], 1);
  EXPECT_EQ(json["steps_redone"], 2);
  EXPECT_EQ(json["committed_steps_lost"], 5);
  EXPECT_EQ(json["generations"], 3);
  EXPECT_EQ(json["recoveries"], nlohmann::json::parse(R"([{"recovery": 4, "from": 3, "to": 4,
      "lost": ["worker-1"], "step": 11, "step_redone": true, "unblock_ms": 120.5,
      "recover_ms": 800.0, "reason": "lost worker-1"}])"));
  EXPECT_EQ(json["world_min"], 2);
  EXPECT_EQ(json["world_max"], 4);
  EXPECT_EQ(json["bytes_sent"], 777);
  EXPECT_EQ(json["peak_memory_bytes"]["worker-0"], 12345);
  EXPECT_EQ(json["peak_memory_bytes"]["worker-1"], 6);
  EXPECT_EQ(json["peak_activation_bytes"]["worker-0"], 678);
  EXPECT_EQ(json["seconds"], 60.25);
}

TEST(report, of_a_run_that_goes_on_has_no_exit_and_what_is_not_known_is_null) {
  const auto json = nlohmann::json::parse(to_json(report{}));
  EXPECT_TRUE(json["exit"].is_null());
  EXPECT_TRUE(json["val_loss"].is_null());
  EXPECT_TRUE(json["model_flops_utilization"].is_null());
}

TEST(report, stays_valid_when_the_loss_is_not_a_number) {
  report r = full_report();
  r.final_loss = std::numeric_limits<double>::quiet_NaN();
  const auto json = nlohmann::json::parse(to_json(r));
  EXPECT_TRUE(json["final_loss"].is_null());
  EXPECT_EQ(json["final_loss_text"], "nan");
}

}  // namespace
}  // namespace troupe::actors
