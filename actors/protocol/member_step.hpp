// Where one member stands in a step: which layers it may compute, and whether its vote is complete.
// Pure: told what happened, it answers with what follows from it.
//
// A layer may be computed in step n once all of its blocks are at version n - 1 here, whether they
// were updated here or arrived. A vote is complete once all blocks that the member is primary of
// are ready and its virtual ranks' losses are known; a member with neither has no vote.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "config/base/error.hpp"

namespace troupe::actors::protocol {

class member_step {
 public:
  // blocks_of_layers: how many blocks each layer has. All blocks are at `version`.
  member_step(const std::vector<std::uint32_t>& blocks_of_layers, std::size_t primary_blocks,
              std::uint32_t first_leaf, std::uint32_t leaves, std::uint64_t version);

  std::uint64_t step() const { return step_; }  // the one being done
  bool votes() const { return primary_blocks_ > 0 || leaves_ > 0; }

  // Not all is at `version` after all: these blocks have still to arrive. Before the first step.
  void lacks(const std::vector<block_id>& blocks);
  // Is the block at version step() - 1 here?
  bool has(block_id block) const { return !missing_.at(block.layer).contains(block.block); }

  // Layers whose blocks are all at version step() - 1, in rising order.
  std::vector<std::uint32_t> open_layers() const;

  // A block has reached this version here. Returns the layer if it may be computed from now on.
  result<std::optional<std::uint32_t>> block_at(block_id block, std::uint64_t version);

  // Both return the vote once it is complete, without facts.
  result<std::optional<vote>> block_ready(std::uint64_t step, const block_sum& sum);
  result<std::optional<vote>> computed(std::uint64_t step, std::vector<leaf_loss> losses);

  // The record of step() was seen: the next step begins.
  status decided(std::uint64_t step);

 private:
  std::optional<vote> vote_if_complete();

  std::vector<std::uint32_t> blocks_of_layers_;
  std::size_t primary_blocks_;
  std::uint32_t first_leaf_, leaves_;
  std::uint64_t step_;
  std::vector<std::set<std::uint32_t>> missing_;  // blocks of each layer not at version step_ - 1
  std::vector<block_sum> sums_;
  std::optional<std::vector<leaf_loss>> losses_;
  bool voted_ = false;
};

}  // namespace troupe::actors::protocol
