// Which virtual ranks each member computes. A member gets a contiguous range, because only whole
// subtrees of the sum's tree can be added where they are computed: every tree node that a range
// holds is sent to the primaries, a whole gradient each. So an even split is not the best one: 64
// virtual ranks on 3 members evenly cost up to 5 nodes a member, with 12 % slack only 2.
//
// The cost of a range for a member is
//     leaves / speed + node_cost * nodes
// in units of one virtual rank on an average member. Chosen is the split whose most expensive
// member is cheapest, and among those the one with the fewest nodes in all, which is the traffic.
// No member's load may exceed the best possible largest load by more than 1/8, whatever the nodes
// cost: idle members are sure, network time may hide behind computing.
//
// Not chosen: ranges of several pieces (24 instead of 16 + 4 + 1 ...), which balance still better
// but make plans that nobody can read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::actors::protocol {

struct leaf_range {
  std::uint32_t first = 0, leaves = 0;
  friend auto operator<=>(const leaf_range&, const leaf_range&) = default;
};

// A node sent, in virtual ranks computed. With a few thousand tokens in a virtual rank it is less,
// with a few hundred more.
inline constexpr double usual_node_cost = 0.05;

// The number of tree nodes that the owner of a range completes: as complete_nodes(), but counted.
std::uint32_t node_count(leaf_range range, std::uint32_t virtual_ranks);

// The smallest possible largest leaves / speed where everybody computes at least one. Requires
// positive speeds and at most as many of them as virtual ranks.
double best_load(std::uint32_t virtual_ranks, std::span<const double> speeds);

// Indices of those who should compute, ascending: all of them, but for the slowest where there are
// more than virtual ranks, and but for who would need longer for a single virtual rank than the
// others for all of them. Requires positive speeds.
std::vector<std::size_t> who_computes(std::uint32_t virtual_ranks, std::span<const double> speeds);

// One range each, in order, none of them empty. Requires as best_load(), and at least one speed.
std::vector<leaf_range> share_leaves(std::uint32_t virtual_ranks, std::span<const double> speeds,
                                     double node_cost);

}  // namespace troupe::actors::protocol
