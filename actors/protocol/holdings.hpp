// What a member has of the blocks that it holds: how far each one is, and whether the gradient of
// the next step is there. It outlives plans: these are the facts that a member answers with when it
// is asked to promise, and everything that a later plan may count on.
//
//   at a version --sum held--> at a version, with the next sum --record--> applying --> next
//   version
//
// The mark `applying` is made before an update begins and taken away when it is done. A block that
// is found with it after its update failed is *lost*: half of it may be new. Whoever promises waits
// for running updates first, so that no answer is given about a block in the middle of one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "actors/protocol/messages.hpp"

namespace troupe::actors::protocol {

class holdings {
 public:
  // The block is here at this version, whole: from the seed, a checkpoint or a verified copy.
  void have(block_id block, std::uint64_t version);
  // What is not among these is given up. Sorted.
  void keep_only(const std::vector<block_id>& blocks);

  // Gradients of later steps than this one mean nothing any more: their steps are done again.
  void drop_sums_after(std::uint64_t step);

  // The verified gradient sum of a step is in memory. Meant for the step after the block's version;
  // one that came for the step after that counts once the block has got there.
  void sum_held(block_id block, std::uint64_t step);
  void applying(block_id block);
  void applied(block_id block, std::uint64_t version);
  // The update that was running failed.
  void torn(block_id block);

  bool has(block_id block) const { return blocks_.contains(block); }
  // No update is running.
  bool still() const { return applying_ == 0; }
  // Nothing if the block is not here or lost.
  std::optional<std::uint64_t> version_of(block_id block) const;
  bool has_next_sum(block_id block) const;
  std::vector<held_fact> facts() const;

 private:
  struct state {
    std::uint64_t version = 0;
    std::uint64_t newest_sum = 0;  // of steps 1, 2, ...; 0: none
    bool applying = false, lost = false;
  };
  std::map<block_id, state> blocks_;
  std::size_t applying_ = 0;
};

}  // namespace troupe::actors::protocol
