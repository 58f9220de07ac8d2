#include "compute/executor.hpp"

#include <gtest/gtest.h>

#include <array>
#include <future>

#include "compute/random.hpp"

namespace troupe::compute {
namespace {

// Known answers of Philox4x32-10 from the authors' test vectors (Random123, kat_vectors).
TEST(random, equals_the_published_known_answers) {
  random_key zero;
  zero.purpose = static_cast<random_purpose>(0);
  EXPECT_EQ(random_block(zero, 0),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

TEST(random, uniform_stays_inside_the_open_interval) {
  EXPECT_GT(uniform(0), 0.0f);
  EXPECT_LT(uniform(0xFFFFFFFFu), 1.0f);
}

}  // namespace
}  // namespace troupe::compute
