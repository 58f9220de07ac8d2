#include "actors/checkpoint_blocks.hpp"

#include "config/base/error.hpp"

namespace troupe::actors {

std::vector<checkpoint::block_to_write> blocks_to_write(computation& of,
                                                        std::span<const block_id> blocks) {
  std::vector<checkpoint::block_to_write> all;
  for (const block_id& b : blocks) {
    const block_memory m = of.memory(b);
    ensure(!m.parameters.empty(), "a member was to save a block that it does not hold");
    all.push_back({b.layer, b.block, {m.parameters, m.first_moments, m.second_moments}});
  }
  return all;
}

checkpoint::block_places places_in(computation& of, const member_share& share) {
  return [&of, computes = share.leaves > 0](std::size_t layer, std::size_t block) {
    const block_id id{static_cast<std::uint32_t>(layer), static_cast<std::uint32_t>(block)};
    const block_memory m = of.memory(id);
    if (!m.parameters.empty() || !computes) {
      return checkpoint::state_memory{m.parameters, m.first_moments, m.second_moments};
    }
    const std::span<std::byte> bytes = of.parameters(id);
    return checkpoint::state_memory{
        {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)}, {}, {}};
  };
}

}  // namespace troupe::actors
