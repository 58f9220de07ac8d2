// What must hold in a simulated world after every point of the protocol, checked against the
// members' memory itself and against the model trained straight down (toy_reference). The numbers
// are those under which docs/simulation.md explains the invariants:
//
//   S-1  same history   a holder's state at a version is the reference's
//   S-2  once           a block goes one version on by one record and the gradient that was voted
//   S-4  one record     the record of a step is the same wherever it is seen
//   S-6  stable first   a step is announced once all holders of some block have seen its record
//   S-8  copies         at a vote every holder has the voted gradient in its memory
//   S-9  spread         holders of a block are at most one version apart
//   S-10 pure input     a layer of step n is computed from version n - 1
//   S-11 slots          every node of every source is added once, and nothing else is
//   S-20 final bits     what is saved at the end is the reference's
//
// The first violation is kept and nothing after it, as all that follows from it is noise. States
// are compared as bits and not as hashes: that is exact, and costs less.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/sim/toy_computation.hpp"
#include "actors/sim/toy_reference.hpp"
#include "actors/sim/world.hpp"

namespace troupe::actors::sim {

struct violation {
  std::string invariant;  // "S-8"
  member_id who;
  std::uint64_t step = 0;
  block_id block;
  std::string what;
  std::string text() const;
};

class invariants final : public world_watcher {
 public:
  invariants(const toy_shape& toy, std::uint64_t steps);

  // How a member's device is found; before the world runs.
  void watch(std::function<const toy_computation&(member_id)> device) {
    device_ = std::move(device);
  }
  // After a run that should have come to its end.
  void check_end(const memory_store& store);

  const std::optional<violation>& first() const { return first_; }
  const toy_reference& reference() const { return reference_; }
  // How often something was compared: a checker that was never asked finds nothing.
  std::uint64_t checks() const { return checks_; }

  void plan_adopted(member_id who, const protocol::plan& plan) override;
  void node_taken(member_id who, std::uint64_t step, const node_key& key) override;
  void sum_held_by_backup(member_id who, std::uint64_t step, block_id block,
                          const hash128& hash) override;
  void voted(member_id who, const protocol::vote& vote) override;
  void record_seen(member_id who, const protocol::record_notice& notice) override;
  void block_applied(member_id who, block_id block, std::uint64_t version) override;
  void committed(member_id who, std::uint64_t step) override;
  void layer_computed(member_id who, std::uint64_t step, std::uint32_t layer) override;

 private:
  // One block in the plan.
  struct placed {
    std::map<member_id, std::uint64_t> versions;  // of its holders
    member_id primary;
    std::size_t inputs = 0;    // nodes that its sum consists of
    std::set<node_key> taken;  // of the step after `voted`
    std::uint64_t voted = 0;   // newest step with a vote
    hash128 voted_hash;        // in it
  };
  placed* find(block_id block);
  void report(const char* invariant, member_id who, std::uint64_t step, block_id block,
              std::string what);
  // A state that is not the reference's: which rule was broken.
  void explain(member_id who, block_id block, std::uint64_t version, const toy_state& state);

  toy_shape toy_;
  toy_reference reference_;
  std::function<const toy_computation&(member_id)> device_;
  std::optional<generation> plan_;
  std::map<block_id, placed> blocks_;
  std::map<member_id, std::uint64_t> seen_;  // newest record that a member has seen
  std::optional<violation> first_;
  std::uint64_t checks_ = 0;
};

}  // namespace troupe::actors::sim
