#include "actors/cli/bench_scaling.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::cli {
namespace {

TEST(bench_scaling, the_median_of_an_even_number_of_values_is_the_mean_of_the_middle_two) {
  const spread s = spread_of({4, 1, 3, 10});
  EXPECT_EQ(s.median, 3.5);
  EXPECT_EQ(s.lowest, 1);
  EXPECT_EQ(s.highest, 10);
  EXPECT_EQ(spread_of({7}).median, 7);
  EXPECT_DEATH((void)spread_of({}), "no values");
}

TEST(bench_scaling, two_workers_are_compared_with_two_runs_of_half_the_batch) {
  // 100 tokens in 0.5 s; side by side 50 in 0.5 s and 50 in 0.25 s; without backups 100 in 0.4 s.
  scaling_round r;
  r.together = {0.5, 9.0, 0.4};  // one step was disturbed
  r.alone[0] = {0.5};
  r.alone[1] = {0.25};
  r.unprotected = {0.4};
  const scaling_figures f = scaling_of(std::span(&r, 1), 100);
  EXPECT_DOUBLE_EQ(f.tokens_together.median, 200);
  EXPECT_DOUBLE_EQ(f.tokens_alone.median, 300);
  EXPECT_DOUBLE_EQ(f.tokens_unprotected.median, 250);
  EXPECT_DOUBLE_EQ(f.efficiency.median, 2.0 / 3);
  EXPECT_DOUBLE_EQ(f.efficiency_unprotected.median, 250.0 / 300);
  EXPECT_DOUBLE_EQ(f.protection_cost.median, 0.2);
}

TEST(bench_scaling, a_machine_that_slows_down_between_rounds_does_not_show_in_the_ratios) {
  const auto at = [](double slowness) {
    scaling_round r;
    r.together = {1.0 * slowness};
    r.unprotected = {0.95 * slowness};
    r.alone[0] = r.alone[1] = {0.96 * slowness};
    return r;
  };
  const std::vector<scaling_round> rounds{at(1), at(5), at(2)};
  const scaling_figures f = scaling_of(rounds, 64);
  EXPECT_NEAR(f.efficiency.lowest, 0.96, 1e-12);
  EXPECT_NEAR(f.efficiency.highest, 0.96, 1e-12);
  EXPECT_NEAR(f.protection_cost.median, 0.05, 1e-12);
  EXPECT_LT(f.tokens_together.lowest, f.tokens_together.median);
}

}  // namespace
}  // namespace troupe::actors::cli
