// The two hashes that name a run's bits, as pure functions. A block has a hash of its parameters
// and one of its whole state (parameters, first and second moments end to end); the hashes of all
// blocks in canonical order, in their canonical 16 bytes, are hashed again. Nobody needs the whole
// model for that: each holder hashes its own blocks. The state hash ends with step and data
// position.
#pragma once

#include <cstdint>
#include <span>

#include "config/base/hash.hpp"

namespace troupe::checkpoint {

// The state of one block, or of one whole layer.
struct state_view {
  std::span<const float> parameters, first_moments, second_moments;
};

hash128 block_weights_hash(std::span<const float> parameters);
hash128 block_state_hash(const state_view& block);

hash128 weights_hash(std::span<const hash128> block_weights_hashes);
hash128 state_hash(std::span<const hash128> block_state_hashes, std::uint64_t step,
                   std::uint64_t data_position);

}  // namespace troupe::checkpoint
