// The coordinator's view of a step: collects one vote of every member until all blocks and all
// virtual ranks are covered, and then knows when the decided step is *stable*: when all holders of
// some block have recorded it, so that no later plan can miss it. Only a stable step is announced.
//
// Votes are a set, not a counter: the same vote twice is nothing, a different one of the same
// member is a failure. Sums are made here in the fixed trees over leaves and over blocks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "actors/protocol/decision.hpp"
#include "actors/protocol/messages.hpp"
#include "config/base/error.hpp"

namespace troupe::actors::protocol {

class step_collector {
 public:
  // blocks_of_layers: how many blocks each layer has; the plan places them all. The first step to
  // be decided is base + 1.
  step_collector(const plan& p, const std::vector<std::uint32_t>& blocks_of_layers);

  std::uint64_t step() const { return step_; }      // being collected
  std::uint64_t stable() const { return stable_; }  // newest stable step
  // Members whose vote is missing, for whoever asks what is waited for.
  std::vector<member_id> waiting_for() const;

  // The step's sums, once the last vote is in.
  result<std::optional<step_votes>> add(member_id from, const vote& v);
  // The collected step was decided: the next one is collected.
  void decided();
  // Returns the newest stable step if it is a newer one than before. A vote for the next step
  // implies a record. A step that is not decided cannot have been recorded: it is passed over.
  std::optional<std::uint64_t> recorded(member_id by, std::uint64_t step);

 private:
  // What a member's vote has to cover.
  struct ballot {
    std::uint32_t first_leaf = 0, leaves = 0;
    std::vector<block_id> blocks;
  };
  step_votes sum_up() const;

  std::vector<std::set<member_id>> holder_sets_;  // distinct
  std::map<member_id, std::uint64_t> recorded_;   // newest step that a member has recorded
  std::map<member_id, ballot> voters_;
  std::map<member_id, vote> votes_;
  std::uint64_t step_, stable_;
};

}  // namespace troupe::actors::protocol
