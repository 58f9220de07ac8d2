#include "model/checkpoint/state_hash.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace troupe::checkpoint {
namespace {

std::string bytes_of(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}
std::string bytes_of(const hash128& h) {
  const auto c = h.canonical();
  return {reinterpret_cast<const char*>(c.data()), c.size()};
}
std::string bytes_of(std::uint64_t n) { return {reinterpret_cast<const char*>(&n), 8}; }

const std::vector<float> p{1, 2, 3}, m{4, 5, 6}, v{7, 8, 9};

TEST(state_hash, is_the_hash_of_the_blocks_hashes_then_step_and_position) {
  const hash128 one = hash_text(bytes_of(p) + bytes_of(m) + bytes_of(v));
  EXPECT_EQ(block_state_hash({p, m, v}), one);
  const hash128 two = hash_text("another block");
  const std::vector<hash128> blocks{one, two};
  EXPECT_EQ(state_hash(blocks, 120, 960),
            hash_text(bytes_of(one) + bytes_of(two) + bytes_of(120) + bytes_of(960)));
}

TEST(weights_hash, is_the_hash_of_the_blocks_parameter_hashes) {
  EXPECT_EQ(block_weights_hash(p), hash_text(bytes_of(p)));
  const std::vector<hash128> blocks{block_weights_hash(p), block_weights_hash(m)};
  EXPECT_EQ(weights_hash(blocks), hash_text(bytes_of(blocks[0]) + bytes_of(blocks[1])));
}

// Computed once with another implementation of xxh3 (Python's xxhash).
TEST(state_hash, has_not_changed_since_the_first_version) {
  EXPECT_EQ(weights_hash(std::vector{block_weights_hash(p)}).hex(),
            "1dc25289bcc0c6c9d0b7906afe80d464");
  EXPECT_EQ(state_hash(std::vector{block_state_hash({p, m, v})}, 120, 960).hex(),
            "cb2065e50f84d18aa6926bcf3e6bbf7b");
}

TEST(state_hash, changes_with_everything_that_it_covers) {
  const std::vector a{block_state_hash({p, m, v})};
  EXPECT_NE(block_state_hash({p, v, m}), a[0]);
  EXPECT_NE(state_hash(a, 120, 960), state_hash(a, 121, 960));
  EXPECT_NE(state_hash(a, 120, 960), state_hash(a, 120, 961));
}

}  // namespace
}  // namespace troupe::checkpoint
