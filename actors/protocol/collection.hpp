// One collection of promises, as the member that collects sees it: who has answered what, for whom
// it still waits, from which version the next plan has to go on, and whether it can be published.
// Pure; whoever drives it asks the members, and asks again.
//
// Base is the highest record that anybody has seen: a fact that all holders of one block have
// recorded cannot be missed, because a plan needs a holder of every block. Covered is a block if a
// holder *of the present plan* answered with it at base, or at base - 1 with the gradient that
// takes it there. A verified copy beside the plan may become a holder, but covers nothing: its
// holder would not know of a record that the plan's holders have seen.
//
// It waits for everybody who is not known to be gone. Publishing at the first cover would expel
// whoever is slow, and it would come back and be expelled again, for ever. Not chosen: a majority;
// it neither helps nor is it needed where the chain lets one plan win.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/planner.hpp"

namespace troupe::actors::protocol {

class collection {
 public:
  // present: the plan to go on from; it outlives the collection.
  explicit collection(const plan& present);

  generation next() const { return generation(present_->number.value + 1); }

  // Somebody who is not in the plan wants to come in and is asked for its promise too. If it comes
  // in the slot of a member, that member's process is proven to be no more, whatever follows.
  void newcomer(const candidate& who);
  // Also of one that was taken for gone without a proof: it is back.
  void answered(member_id from, const promise& what);
  // It will not answer: gone, or its line is. `proven`: its process does not exist any more.
  void gone(member_id who, bool proven);
  // It is not waited for any longer, but may still answer.
  void too_slow();

  // Whose promise is missing; in order of ids.
  std::vector<member_id> waiting_for() const;
  bool has_answered(member_id who) const { return promises_.contains(who); }

  std::uint64_t base() const;
  // The blocks that no holder has answered with.
  std::vector<block_id> uncovered() const;
  // Of the uncovered ones: those whose holders are all proven to be gone, or have lost it.
  std::vector<block_id> lost() const;
  // All records that are known up to base and not known to be written, at least base's own.
  std::vector<record_notice> records() const;
  // Can the member hold the block in a plan that starts from base()?
  bool can_hold(member_id who, block_id block) const;

 private:
  const plan* present_;
  std::map<member_id, candidate> newcomers_;
  std::map<member_id, promise> promises_;
  std::map<member_id, bool> gone_;  // proven?
  std::set<member_id> replaced_;    // members of the plan in whose slot a later process has come
  bool too_slow_ = false;
};

// What the next plan is made from, besides the promises.
struct next_plan_settings {
  std::vector<std::vector<std::uint32_t>> layers;  // elements of each block
  std::uint32_t backups = 1;
  spare_policy spares = spare_policy::backups;
  member_id coordinator;  // who publishes it
  std::string parent;     // hash of the present plan
  // Asked to go: not in the next plan if every block then still has as many holders as it should.
  std::set<member_id> leaving;
  std::string reason;
};

// The plan to publish, or the blocks that keep it from being one.
std::variant<plan, std::vector<block_id>> next_plan(const collection& from, const plan& present,
                                                    const std::vector<candidate>& newcomers,
                                                    const next_plan_settings& settings);

// What the members of a plan should hold if every copy were made: the aim of copies.
plan aim_of(const plan& present, const next_plan_settings& settings);

}  // namespace troupe::actors::protocol
