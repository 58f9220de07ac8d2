#include "actors/run_history.hpp"

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using testing::ElementsAre;

constexpr const char* two_losses =
    R"({"time":"2026-01-02T03:04:05.678Z","mono":0.5,"event":"generation","number":0,"start":true,"computing":4,"from_step":0,"recorded":0,"peak_flops":1e9,"peak_source":"given"}
{"mono":3,"event":"validation","step":10,"loss":2.5,"tokens":64}
{"mono":4,"event":"member_lost","member":"worker-3","recovery":1}
{"mono":4.5,"event":"generation","number":1,"start":false,"computing":3,"from_step":12,"recorded":12,"recovery":1,"from":0,"to":1,"lost":["worker-3"],"step_redone":true,"unblock_ms":100,"noticed_mono":4}
{"mono":5,"event":"recovered","recovery":1,"from":0,"to":1,"lost":["worker-3"],"step":13,"step_redone":true,"unblock_ms":100,"recover_ms":1000}
{"mono":6,"event":"checkpoint_published","step":15,"weights_hash":"aa","state_hash":"bb"}
{"mono":7,"event":"generation","number":2,"start":false,"computing":2,"from_step":15,"recorded":18,"recovery":2,"from":1,"to":2,"lost":["worker-2"],"step_redone":true,"unblock_ms":50,"noticed_mono":6.5}
)";

TEST(run_history, counts_plans_losses_and_recoveries_of_a_start) {
  const run_history h = read_history(two_losses);
  EXPECT_TRUE(h.started);
  EXPECT_EQ(h.mono, 7);
  ASSERT_TRUE(h.wall);
  EXPECT_EQ(iso_8601(*h.wall), "2026-01-02T03:04:05.678Z");
  EXPECT_EQ(h.generations, 3U);
  EXPECT_EQ(h.last_generation, 2U);
  EXPECT_EQ(h.world_min, 2U);
  EXPECT_EQ(h.world_max, 4U);
  EXPECT_EQ(h.committed_steps_lost, 3U);
  EXPECT_EQ(h.val_loss, 2.5);
  EXPECT_EQ(h.validations.at(10).tokens, 64U);
  EXPECT_EQ(h.weights_hash, "aa");
  EXPECT_EQ(h.state_hash, "bb");
  EXPECT_EQ(h.peak_flops, 1e9);
  EXPECT_EQ(h.peak_source, "given");
  ASSERT_EQ(h.recoveries.size(), 1U);
  EXPECT_EQ(h.recoveries[0].step, 13U);
  EXPECT_EQ(h.recoveries[0].recover_ms, 1000);
  EXPECT_THAT(h.recoveries[0].lost, ElementsAre("worker-3"));
  EXPECT_EQ(h.losses.at("worker-3"), 1U);
  ASSERT_EQ(h.under_way.size(), 1U);
  EXPECT_EQ(h.under_way[0].id, 2U);
  EXPECT_EQ(h.under_way[0].noticed, 6.5);
  EXPECT_EQ(h.under_way[0].unblock_ms, 50);
}

TEST(run_history, steps_are_redone_as_far_as_the_run_has_come_again) {
  const run_history h = read_history(two_losses);
  EXPECT_EQ(h.steps_redone(15), 2U) << "the two that were under way";
  EXPECT_EQ(h.steps_redone(17), 4U);
  EXPECT_EQ(h.steps_redone(30), 5U) << "no more than had lines";
}

TEST(run_history, begins_anew_with_a_start_but_for_what_was_validated) {
  const std::string text =
      std::string(two_losses) +
      R"({"mono":0.25,"event":"generation","number":3,"start":true,"computing":5,"from_step":15,"recorded":18}
)";
  const run_history h = read_history(text);
  EXPECT_EQ(h.first_step, 15U);
  EXPECT_EQ(h.first_generation, 3U);
  EXPECT_EQ(h.generations, 1U);
  EXPECT_EQ(h.world_min, 5U);
  EXPECT_EQ(h.committed_steps_lost, 0U) << "a start from a checkpoint loses nothing";
  EXPECT_TRUE(h.recoveries.empty());
  EXPECT_TRUE(h.under_way.empty());
  EXPECT_FALSE(h.val_loss);
  EXPECT_EQ(h.validations.size(), 1U);
  EXPECT_EQ(h.steps_redone(17), 2U);
  EXPECT_EQ(h.mono, 0.25);
}

TEST(run_history, passes_over_lines_that_say_nothing_and_over_a_torn_one) {
  const std::string rubbish =
      "\n[]\nnot json\n{}\n{\"event\":7}\n"
      "{\"event\":\"generation\",\"start\":\"yes\",\"number\":-1,\"time\":\"yesterday, at half "
      "past\"}\n";
  const run_history h = read_history(rubbish + two_losses + "{\"mono\":99,\"event\":\"val");
  EXPECT_EQ(h.generations, 3U);
  EXPECT_EQ(h.mono, 7);
  EXPECT_FALSE(read_history("").started);
  EXPECT_FALSE(read_history(rubbish).wall);
}

}  // namespace
}  // namespace troupe::actors
