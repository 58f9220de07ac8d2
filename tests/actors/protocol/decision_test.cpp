#include "actors/protocol/decision.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace troupe::actors::protocol {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(decision, divides_the_sums_by_the_counted_tokens) {
  const decision_record r =
      decide(7, 4, {.loss_sum = 30, .tokens = 10, .squares = 400}, {.max_norm = 0, .lr = 0.25f});
  EXPECT_FALSE(r.skip);
  EXPECT_EQ(r.why_skipped, "");
  EXPECT_EQ(r.step, 7u);
  EXPECT_EQ(r.updates, 5u);
  EXPECT_EQ(r.loss, 3.0);
  EXPECT_EQ(r.grad_norm, 2.0);  // sqrt(400) / 10
  EXPECT_EQ(r.scale, 0.1f);
  EXPECT_EQ(r.lr, 0.25f);
  EXPECT_EQ(r.tokens, 10.0);
}

TEST(decision, clips_a_gradient_above_the_largest_norm) {
  const step_votes votes{.loss_sum = 30, .tokens = 10, .squares = 400};
  EXPECT_EQ(decide(1, 0, votes, {.max_norm = 0.5}).scale,
            static_cast<float>(0.5 / (2.0 + 1e-6) / 10.0));
  EXPECT_EQ(decide(1, 0, votes, {.max_norm = 0.5}).grad_norm, 2.0);  // before clipping
  EXPECT_EQ(decide(1, 0, votes, {.max_norm = 2.5}).scale, 0.1f);
  EXPECT_EQ(decide(1, 0, votes, {.max_norm = 0}).scale, 0.1f);
}

TEST(decision, clipping_never_lengthens_a_gradient) {
  for (const double norm : {0.0, 1e-9, 0.5, 0.999999, 1.0, 1.000001, 3.0}) {
    const decision_record r =
        decide(1, 0, {.loss_sum = 1, .tokens = 1, .squares = norm * norm}, {.max_norm = 1.0});
    EXPECT_LE(r.scale, 1.0f) << norm;
    EXPECT_LE(r.scale * norm, 1.0 + 1e-7) << norm;
    EXPECT_TRUE(norm > 0.99999 || r.scale == 1.0f) << norm;
  }
}

TEST(decision, skips_a_step_without_counted_tokens) {
  const decision_record r =
      decide(3, 2, {.loss_sum = 0, .tokens = 0, .squares = 0}, {.max_norm = 1, .lr = 0.5f});
  EXPECT_TRUE(r.skip);
  EXPECT_THAT(r.why_skipped, testing::HasSubstr("no target token"));
  EXPECT_EQ(r.step, 3u);
  EXPECT_EQ(r.updates, 2u);
  EXPECT_EQ(r.scale, 0.0f);
  EXPECT_EQ(r.loss, 0.0);
  EXPECT_EQ(r.grad_norm, 0.0);
}

TEST(decision, skips_a_step_whose_gradient_or_loss_is_not_finite) {
  for (const step_votes& votes : {step_votes{30, 10, infinity}, step_votes{30, 10, nan},
                                  step_votes{infinity, 10, 400}, step_votes{nan, 10, 400}}) {
    const decision_record r = decide(9, 6, votes, {.max_norm = 1, .lr = 0.5f});
    EXPECT_TRUE(r.skip);
    EXPECT_THAT(r.why_skipped, testing::HasSubstr("not finite"));
    EXPECT_EQ(r.updates, 6u);
    EXPECT_EQ(r.scale, 0.0f);
    EXPECT_EQ(r.tokens, 10.0);
  }
}

TEST(decision, updates_all_the_same_where_skipping_is_off) {
  const decision_record r = decide(9, 6, {.loss_sum = 30, .tokens = 10, .squares = nan},
                                   {.max_norm = 1, .skip_nonfinite = false});
  EXPECT_FALSE(r.skip);
  EXPECT_EQ(r.updates, 7u);
  EXPECT_EQ(r.scale, 0.1f);
}

TEST(decision, takes_large_finite_sums_as_they_are) {
  const decision_record r = decide(1, 0, {.loss_sum = 1, .tokens = 1, .squares = 1e300}, {});
  EXPECT_FALSE(r.skip);
  EXPECT_DOUBLE_EQ(r.grad_norm, 1e150);
}

TEST(decision, is_a_function_of_votes_and_settings_alone) {
  const step_votes votes{.loss_sum = 31.7, .tokens = 11, .squares = 3.3};
  const step_settings settings{.max_norm = 0.01, .lr = 1e-3f};
  EXPECT_EQ(decide(5, 5, votes, settings), decide(5, 5, votes, settings));
}

}  // namespace
}  // namespace troupe::actors::protocol
