#include "actors/protocol/plan_cost.hpp"

#include <algorithm>
#include <map>

#include "actors/protocol/leaf_ranges.hpp"
#include "config/base/error.hpp"

namespace troupe::actors::protocol {
namespace {

constexpr std::uint64_t float_bytes = 4;

}  // namespace

std::vector<member_cost> predict(const plan& p, const model_sizes& sizes,
                                 std::span<const double> speeds) {
  ensure(speeds.empty() || speeds.size() == p.members.size(),
         "a plan's cost needs the speed of each of its members");
  std::vector<member_cost> costs;
  std::map<member_id, std::size_t> places;
  std::uint64_t all_nodes = 0, ranks = 0, model_elements = 0, gradient_elements = 0;
  for (const plan_member& m : p.members) {
    places[m.id] = costs.size();
    member_cost& cost = costs.emplace_back();
    cost.id = m.id;
    cost.leaves = m.leaves;
    cost.nodes = m.leaves > 0 ? node_count({m.first_leaf, m.leaves}, p.virtual_ranks) : 0;
    all_nodes += cost.nodes;
    ranks += m.leaves > 0 ? 1 : 0;
  }
  for (const auto& layer : sizes) {
    for (const block_sizes& block : layer) {
      model_elements += block.elements;
      gradient_elements += block.elements + block.tied;
    }
  }
  std::vector<std::uint64_t> own_gradients(costs.size());  // elements of its primary blocks
  for (const placed_blocks& part : p.placement) {
    const std::size_t owner = places.at(part.primary);
    member_cost& primary = costs[owner];
    std::uint64_t computing_holders = primary.leaves > 0 ? 1 : 0;
    for (member_id id : part.backups) computing_holders += costs[places.at(id)].leaves > 0 ? 1 : 0;
    for (std::uint32_t i = 0; i < part.blocks; ++i) {
      const block_sizes& block = sizes.at(part.layer).at(part.first_block + i);
      own_gradients[owner] += block.elements + block.tied;
      primary.primary_blocks += 1;
      primary.primary_elements += block.elements;
      primary.sends.sums += float_bytes * block.elements * part.backups.size();
      primary.sends.parameters += float_bytes * block.elements * (ranks - computing_holders);
      for (member_id id : part.backups) {
        member_cost& backup = costs[places.at(id)];
        backup.backup_blocks += 1;
        backup.backup_elements += block.elements;
      }
    }
  }
  double longest = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    member_cost& c = costs[i];
    const std::uint64_t held = c.primary_elements + c.backup_elements;
    c.sends.nodes = float_bytes * c.nodes * (gradient_elements - own_gradients[i]);
    c.holds.parameters = float_bytes * (c.leaves > 0 ? model_elements : held);
    c.holds.moments = 2 * float_bytes * held;
    c.holds.sums = 2 * float_bytes * held;
    c.holds.nodes = float_bytes * c.nodes * gradient_elements;
    c.holds.slots = float_bytes * (all_nodes - c.nodes) * own_gradients[i];
    const double speed = speeds.empty() || !(speeds[i] > 0) ? 1 : speeds[i];
    c.busy = c.leaves / speed;
    longest = std::max(longest, c.busy);
  }
  for (member_cost& c : costs) c.busy = longest > 0 ? c.busy / longest : 0;
  return costs;
}

}  // namespace troupe::actors::protocol
