#include "compute/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "compute/random_normal.hpp"

namespace troupe::compute {
namespace {

using block = std::array<std::uint32_t, 4>;

// Known answers of Philox4x32-10 from the authors' test vectors (Random123, kat_vectors), whose
// counter is {element / 4, purpose and layer, sequence, step}.
TEST(random, equals_the_published_known_answers) {
  random_key key;
  key.purpose = static_cast<random_purpose>(0);
  EXPECT_EQ(random_block(key, 0), (block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));

  key.seed = 0xffffffffffffffff;
  key.layer = 0xffffffff;
  key.sequence = 0xffffffff;
  key.step = 0xffffffff;
  EXPECT_EQ(random_block(key, 0xffffffff), (block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));

  key.seed = 0x299f31d0a4093822;
  key.layer = 0x85a308d3;
  key.sequence = 0x13198a2e;
  key.step = 0x03707344;
  EXPECT_EQ(random_block(key, 0x243f6a88), (block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(random, every_part_of_the_key_changes_the_block) {
  const random_key base{1, random_purpose::dropout_embedding, 2, 3, 4};
  std::vector<random_key> others(5, base);
  others[0].seed = 1ull << 32;
  others[1].purpose = random_purpose::dropout_attention;
  others[2].step = 3;
  others[3].sequence = 4;
  others[4].layer = 5;
  for (const random_key& other : others) EXPECT_NE(random_block(other, 9), random_block(base, 9));
  EXPECT_NE(random_block(base, 8), random_block(base, 9));
  EXPECT_NE(random_block(base, 9 + (1ull << 32)), random_block(base, 9));
}

TEST(random, uniform_stays_inside_the_open_interval) {
  EXPECT_GT(uniform(0), 0.0f);
  EXPECT_LT(uniform(0xFFFFFFFFu), 1.0f);
}

TEST(random, normal_numbers_have_the_moments_of_a_normal_distribution) {
  const random_key key{42, random_purpose::initialization, 0, 0, 3};
  constexpr int count = 1 << 20;
  std::vector<float> values(count);
  fill_normal(key, 0, values);
  double moments[5] = {}, neighbours = 0;
  for (int i = 0; i < count; ++i) {
    double power = 1;
    for (double& moment : moments) moment += power / count, power *= values[i];
    if (i % 2 == 1) neighbours += static_cast<double>(values[i]) * values[i - 1] / (count / 2);
  }
  // Five standard deviations of each estimate.
  EXPECT_NEAR(moments[1], 0, 5 / std::sqrt(count));
  EXPECT_NEAR(moments[2], 1, 5 * std::sqrt(2.0 / count));
  EXPECT_NEAR(moments[3], 0, 5 * std::sqrt(15.0 / count));
  EXPECT_NEAR(moments[4], 3, 5 * std::sqrt(96.0 / count));
  EXPECT_NEAR(neighbours, 0, 5 / std::sqrt(count / 2));
}

TEST(random, normal_numbers_follow_from_their_element_alone) {
  const random_key key{7, random_purpose::initialization, 0, 0, 1};
  for (const std::uint64_t first : {0ull, 1ull, 6ull, (1ull << 34) - 3}) {
    std::vector<float> values(13);
    fill_normal(key, first, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float alone = normal(key, first + i);
      EXPECT_EQ(std::memcmp(&alone, &values[i], sizeof alone), 0) << first << " + " << i;
    }
  }
}

// Checked against a separate program once; they change only together with the numerics version.
TEST(random, normal_numbers_never_change) {
  const random_key key{1234, random_purpose::initialization, 0, 0, 0};
  const float expected[4] = {-0x1.50c9bap-2f, -0x1.7e8a54p+0f, 0x1.e795a6p-1f, 0x1.fa03a8p-4f};
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(normal(key, i), expected[i]) << std::hexfloat << normal(key, i);
}

}  // namespace
}  // namespace troupe::compute
