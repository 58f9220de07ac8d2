// Golden rates are the documented formula, computed elsewhere in double: with s finished steps and
// D = steps that decay, warm-up (s + 1) / warmup, then 1, then p = (s + 1 - start) / D with
// start = total + 1 - D.
#include "model/schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::model {
namespace {

void expect_rates(const schedule& s, const std::vector<double>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_FLOAT_EQ(s.rate(i + 1), static_cast<float>(expected[i])) << "step " << i + 1;
  }
}

schedule ten_steps(decay_shape shape, double min_factor = 0) {
  return {.lr = 1.0,
          .warmup_steps = 2,
          .total_steps = 10,
          .decay_ratio = {},
          .shape = shape,
          .min_factor = min_factor};
}

TEST(schedule, linear_decay_after_a_warm_up) {
  expect_rates(ten_steps(decay_shape::linear),
               {0.5, 1.0, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125});
  expect_rates(ten_steps(decay_shape::linear, 0.2),
               {0.5, 1.0, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3});
}

TEST(schedule, cosine_decay_after_a_warm_up) {
  expect_rates(ten_steps(decay_shape::cosine),
               {0.5, 1.0, 1.0, 0.96193976625564337, 0.85355339059327373, 0.69134171618254492, 0.5,
                0.30865828381745508, 0.14644660940672627, 0.03806023374435663});
  expect_rates(ten_steps(decay_shape::cosine, 0.1),
               {0.5, 1.0, 1.0, 0.96574578963007903, 0.86819805153394636, 0.72220754456429043, 0.55,
                0.37779245543570957, 0.23180194846605364, 0.13425421036992097});
}

TEST(schedule, square_root_decay_after_a_warm_up) {
  expect_rates(ten_steps(decay_shape::sqrt),
               {0.5, 1.0, 1.0, 0.64644660940672627, 0.5, 0.38762756430420547, 0.29289321881345254,
                0.20943058495790512, 0.13397459621556135, 0.064585653306514655});
}

TEST(schedule, constant_rate_after_a_warm_up) {
  expect_rates(ten_steps(decay_shape::constant), {0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1});
}

TEST(schedule, decays_only_the_given_share_of_the_run) {
  schedule s = ten_steps(decay_shape::linear);
  s.decay_ratio = 0.4;
  expect_rates(s, {0.5, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25});
  s.decay_ratio = 0.0;
  expect_rates(s, {0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  s.decay_ratio = 1.0;  // no more than what the warm-up leaves
  expect_rates(s, {0.5, 1.0, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125});
}

TEST(schedule, the_last_step_never_has_rate_zero) {
  for (const decay_shape shape :
       {decay_shape::linear, decay_shape::cosine, decay_shape::sqrt, decay_shape::constant}) {
    for (const std::uint64_t total : {1, 2, 3, 10, 1000}) {
      for (const std::uint64_t warmup : {0, 1, 2, 3}) {
        if (warmup > total) continue;
        const schedule s{.lr = 3e-4,
                         .warmup_steps = warmup,
                         .total_steps = total,
                         .decay_ratio = {},
                         .shape = shape,
                         .min_factor = 0};
        float before = s.rate(warmup + 1);
        for (std::uint64_t step = 1; step <= total; ++step) {
          EXPECT_GT(s.rate(step), 0.0f) << step << " of " << total;
          EXPECT_LE(s.rate(step), 3e-4f);
          if (step <= warmup) continue;
          EXPECT_LE(s.rate(step), before) << step << " of " << total;
          before = s.rate(step);
        }
      }
    }
  }
}

TEST(schedule, stays_at_the_end_of_the_decay_behind_its_last_step) {
  EXPECT_FLOAT_EQ(ten_steps(decay_shape::cosine, 0.1).rate(11), 0.1f);
  EXPECT_FLOAT_EQ(ten_steps(decay_shape::cosine, 0.1).rate(500), 0.1f);
}

TEST(schedule, a_warm_up_may_fill_the_whole_run) {
  schedule s = ten_steps(decay_shape::cosine);
  s.warmup_steps = 10;
  expect_rates(s, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0});
}

TEST(schedule, rounds_once_to_float) {
  schedule s = ten_steps(decay_shape::constant);
  s.lr = 0.1;
  EXPECT_EQ(s.rate(1), static_cast<float>(0.05));
  EXPECT_EQ(s.rate(5), 0.1f);
}

}  // namespace
}  // namespace troupe::model
