#include "model/sampling.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace troupe::model {
namespace {

const std::vector<float> logits = {0.5f, 2.0f, -1.0f, 2.0f, 1.0f};

// How often each token comes in `count` draws.
std::map<std::int32_t, double> shares(const sampling_settings& settings, int count) {
  std::map<std::int32_t, double> found;
  for (int i = 0; i < count; ++i)
    found[draw_token(logits, settings, 0, static_cast<std::uint64_t>(i))] += 1.0 / count;
  return found;
}

TEST(sampling, at_temperature_0_takes_the_most_probable_and_of_equals_the_lower) {
  for (std::uint64_t position = 0; position < 100; ++position)
    EXPECT_EQ(draw_token(logits, {.temperature = 0, .top_k = 0, .seed = position}, 0, position), 1);
}

TEST(sampling, draws_in_the_proportions_of_the_exponentials) {
  for (const double temperature : {0.5, 1.0, 2.0}) {
    SCOPED_TRACE(temperature);
    constexpr int draws = 20'000;
    const auto found = shares({.temperature = temperature, .top_k = 0, .seed = 7}, draws);
    double total = 0;
    for (const float l : logits) total += std::exp(l / temperature);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double p = std::exp(logits[i] / temperature) / total;
      const double four_sigma = 4 * std::sqrt(p * (1 - p) / draws);
      const auto at = found.find(static_cast<std::int32_t>(i));
      EXPECT_NEAR(at == found.end() ? 0 : at->second, p, four_sigma) << "token " << i;
    }
  }
}

TEST(sampling, top_k_keeps_the_most_probable_and_of_equals_the_lower) {
  const auto one = shares({.temperature = 1, .top_k = 1, .seed = 3}, 200);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one.begin()->first, 1);
  const auto two = shares({.temperature = 1, .top_k = 2, .seed = 3}, 4000);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_NEAR(two.at(1), 0.5, 0.04);
  EXPECT_NEAR(two.at(3), 0.5, 0.04);
  EXPECT_EQ(shares({.temperature = 1, .top_k = 99, .seed = 3}, 4000).size(), logits.size());
}

TEST(sampling, follows_from_seed_sample_and_position_alone) {
  const auto draws = [](std::uint64_t seed, std::uint64_t sample) {
    std::vector<std::int32_t> all;
    for (std::uint64_t position = 0; position < 64; ++position)
      all.push_back(
          draw_token(logits, {.temperature = 1, .top_k = 0, .seed = seed}, sample, position));
    return all;
  };
  EXPECT_EQ(draws(1, 0), draws(1, 0));
  EXPECT_NE(draws(1, 0), draws(2, 0));
  EXPECT_NE(draws(1, 0), draws(1, 1));
}

TEST(sampling, survives_huge_and_infinitely_small_logits) {
  const float inf = std::numeric_limits<float>::infinity();
  for (std::uint64_t position = 0; position < 50; ++position) {
    EXPECT_EQ(draw_token(std::vector<float>{-inf, 3e38f, -3e38f}, {}, 0, position), 1);
    EXPECT_EQ(draw_token(std::vector<float>{-5.0f}, {}, 0, position), 0);
  }
}

// With NaN a plain comparison is no order, and sorting by it may leave the array.
TEST(sampling, ranks_what_is_not_a_number_last) {
  std::vector<float> values(1000, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(draw_token(values, {.temperature = 0}, 0, 0), 0);
  values[700] = -1.0f;
  values[300] = -2.0f;
  EXPECT_EQ(draw_token(values, {.temperature = 0}, 0, 0), 700);
  for (std::uint64_t position = 0; position < 50; ++position) {
    const std::int32_t id = draw_token(values, {.temperature = 1, .top_k = 2}, 0, position);
    EXPECT_TRUE(id == 700 || id == 300) << id;
  }
}

}  // namespace
}  // namespace troupe::model
