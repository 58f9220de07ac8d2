#include "model/checkpoint/state_hash.hpp"

namespace troupe::checkpoint {

hash128 block_weights_hash(std::span<const float> parameters) {
  return hash_bytes(std::as_bytes(parameters));
}

hash128 block_state_hash(const state_view& block) {
  hasher h;
  h.add(std::as_bytes(block.parameters));
  h.add(std::as_bytes(block.first_moments));
  h.add(std::as_bytes(block.second_moments));
  return h.finish();
}

hash128 weights_hash(std::span<const hash128> block_weights_hashes) {
  hasher h;
  for (const hash128& inner : block_weights_hashes) h.add(inner);
  return h.finish();
}

hash128 state_hash(std::span<const hash128> block_state_hashes, std::uint64_t step,
                   std::uint64_t data_position) {
  hasher h;
  for (const hash128& inner : block_state_hashes) h.add(inner);
  h.add_u64(step);
  h.add_u64(data_position);
  return h.finish();
}

}  // namespace troupe::checkpoint
