// Which members hold which blocks. In order of weight:
//
// 1. Every block has one primary and `backups` backups, as far as there are members.
// 2. A block's holders are in as many different domains as there are, and then on as many different
//    hosts. Unless memory forbids: an overfull process is killed and takes everything with it.
// 3. Bytes are even: primaries differ by at most about a block between members that may be primary,
//    and everything held by about a block where 2 allows it.
// 4. Who held a block before goes on holding it; what has to move goes where a copy is already, or
//    must be made anyway.
//
// Each layer is spread over all primaries, in runs of consecutive blocks: the gradients of a layer
// become ready together, so whole layers on one member would leave the other members' links idle.
// Whose blocks a member backs up changes from layer to layer, so that the blocks of a lost member
// are promoted and copied again by many and not by one.
//
// Greedy, then levelled by single moves. Not chosen: an exact flow problem, which would move less
// in rare cases and be as long as the rest of the planner.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace troupe::actors::protocol {

// A member, as placement sees it.
struct block_holder {
  std::uint32_t domain = 0, host = 0;  // equal numbers: lost together; a host is in one domain
  std::uint64_t capacity = std::numeric_limits<std::uint64_t>::max();  // elements
  bool may_be_primary = true;  // who may not be primary may still hold backups
  bool may_back_up = true;
};

// Members by their place in the list of holders.
struct held_by {
  std::uint32_t primary = 0;
  std::vector<std::uint32_t> backups;  // ascending
};

struct placement_request {
  std::vector<block_holder> holders;               // at least one of them may be primary
  std::vector<std::vector<std::uint32_t>> layers;  // elements of each block
  std::uint32_t backups = 1;
  // Who of the holders holds each block now, layers end to end; the present primary first, if it is
  // one of them. Empty: nobody holds anything yet.
  std::vector<std::vector<std::uint32_t>> present;
  std::vector<bool> present_primary;  // does `present` of the block begin with its primary?
};

// One entry a block, layers end to end.
std::vector<held_by> place_blocks(const placement_request& request);

}  // namespace troupe::actors::protocol
