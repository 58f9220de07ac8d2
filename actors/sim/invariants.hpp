// What must hold in a simulated world after every point of the protocol, checked against the
// members' memory itself and against the model trained straight down (toy_reference). The numbers
// are those under which docs/simulation.md explains the invariants:
//
//   S-1  same history   a holder's state at a version is the reference's
//   S-2  once           a block goes one version on by one record and the gradient that was voted
//   S-3  one chain      plans are adopted in rising order, each naming the one before, one a number
//   S-4  one record     the record of a step is the same wherever it is seen
//   S-5  no old voice   who promised a plan does nothing more in the one before
//   S-6  no step back   a step is announced once all holders of some block have seen its record, or
//                       a plan goes on from it; every later plan goes on from there or later
//   S-7  covered        each block of a plan has a holder that is at its base or one step before
//   S-8  copies         at a vote every holder has the voted gradient in its memory
//   S-9  spread         holders of a block are at most one version apart
//   S-10 pure input     a layer of step n is computed from version n - 1
//   S-11 slots          every node of every source is added once, and nothing else is
//   S-14 fenced         plans and lines come from whoever has the newest plan
//   S-15 lines          a step is recorded once, in order, and by equal lines
//   S-16 torn           a block is not read, copied or counted while it is updated
//   S-17 verified copy  a copy is the reference's state at its version before it counts
//   S-19 one class      all members of a plan compute with the same numerics
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

class invariants : public world_watcher {
 public:
  invariants(const toy_shape& toy, std::uint64_t steps);

  // How a member's device is found; before the world runs.
  void watch(std::function<const toy_computation&(member_id)> device) {
    device_ = std::move(device);
  }
  // Which life of a member has that device; without it every member has one life.
  void watch_lives(std::function<incarnation(member_id)> life) { life_ = std::move(life); }
  // After a run that should have come to its end.
  void check_end(const memory_store& store);

  // Has it promised a later plan, or adopted one?
  bool has_left(member_id who, generation plan) const {
    const auto m = members_.find(who);
    return m != members_.end() && (m->second.promised > plan || m->second.plan > plan);
  }

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
  void copy_verified(member_id who, block_id block, std::uint64_t version) override;
  void promised(member_id who, generation next) override;

 private:
  // One block in one plan.
  struct placed {
    std::vector<member_id> holders;  // the primary first
    std::size_t inputs = 0;          // nodes that its sum consists of
    std::set<node_key> taken;        // of the step after `voted`
    std::uint64_t voted = 0;         // newest step with a vote
    hash128 voted_hash;              // in it
  };
  struct known_plan {
    protocol::plan plan;
    std::map<block_id, placed> blocks;
    std::string numerics;
  };
  // What is known of a member's present life.
  struct one {
    incarnation life;
    std::optional<generation> plan;  // adopted
    generation promised;
    std::uint64_t seen = 0;                      // newest record
    std::map<block_id, std::uint64_t> versions;  // of what it holds
  };
  one& at(member_id who);
  known_plan* plan_of(member_id who);
  placed* find(member_id who, block_id block);
  bool same_life(const known_plan& in, member_id who) const;
  void report(const char* invariant, member_id who, std::uint64_t step, block_id block,
              std::string what);
  void must_not_have_promised(member_id who, std::uint64_t step, const char* what);
  void first_of_plan(const protocol::plan& plan);
  // A state that is not the reference's: which rule was broken.
  void explain(member_id who, block_id block, std::uint64_t version, const toy_state& state);

  toy_shape toy_;
  toy_reference reference_;
  std::function<const toy_computation&(member_id)> device_;
  std::function<incarnation(member_id)> life_;
  std::map<generation, known_plan> plans_;
  std::map<member_id, one> members_;
  std::uint64_t announced_ = 0;  // newest step
  generation announced_in_;
  std::optional<violation> first_;
  std::uint64_t checks_ = 0;
};

}  // namespace troupe::actors::sim
