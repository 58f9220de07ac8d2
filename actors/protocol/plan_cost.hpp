// What a plan costs each member: bytes held, bytes sent in a step, and how long it is busy compared
// with the busiest. Follows from the plan and the sizes alone, so it is known before anything runs;
// `troupe plan` prints it, and a run is refused that cannot fit.
//
// A step sends, per member:
//   nodes       its completed tree nodes of every block whose primary is somebody else; a tied
//               token table has two gradients, so its blocks travel twice
//   sums        the finished sum of its primary blocks, to each backup
//   parameters  its primary blocks, to every member that computes and is no holder
// Acknowledgements, votes and the few hundred bytes of heads are left out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/protocol/plan.hpp"

namespace troupe::actors::protocol {

struct block_sizes {
  std::uint64_t elements = 0;
  std::uint64_t tied = 0;  // elements of the second gradient, of the head; 0: there is none
};
using model_sizes = std::vector<std::vector<block_sizes>>;  // by layer and block

struct held_bytes {
  std::uint64_t parameters = 0;  // of the whole model where it computes, else of what it holds
  std::uint64_t moments = 0;     // two for each element held
  std::uint64_t sums = 0;        // of two steps, for each element held
  std::uint64_t nodes = 0;       // its own gradients, a buffer for each tree node it completes
  std::uint64_t slots = 0;       // other members' nodes of its primary blocks
  std::uint64_t total() const { return parameters + moments + sums + nodes + slots; }
  friend bool operator==(const held_bytes&, const held_bytes&) = default;
};

struct sent_bytes {
  std::uint64_t nodes = 0, sums = 0, parameters = 0;
  std::uint64_t total() const { return nodes + sums + parameters; }
  friend bool operator==(const sent_bytes&, const sent_bytes&) = default;
};

struct member_cost {
  member_id id;
  std::uint32_t leaves = 0, nodes = 0;
  std::uint64_t primary_blocks = 0, backup_blocks = 0;
  std::uint64_t primary_elements = 0, backup_elements = 0;
  held_bytes holds;
  sent_bytes sends;
  double busy = 0;  // its time to compute over the longest of all members, 0..1
};

// One entry a member, in the plan's order. `speeds`: as of the candidates, in the same order;
// empty: all alike. Requires that the plan places exactly the blocks of `sizes`.
std::vector<member_cost> predict(const plan& p, const model_sizes& sizes,
                                 std::span<const double> speeds);

}  // namespace troupe::actors::protocol
