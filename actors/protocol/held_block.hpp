// One block of the model in the hands of one member, as its primary or as a backup: how a gradient
// becomes held twice before anybody votes for it, and how the decision then takes the block from
// one version to the next, once. Pure state machines: events in, orders out; whoever carries the
// orders out (optimizer_shard) answers with the next event.
//
//   primary:  collecting --all nodes--> reducing --sum--> forwarding --all backups hold it--> ready
//             ready --record--> applying --done--> collecting, one version on
//   backup:   waiting --sum arrived--> verifying --equal hash--> held --record--> applying
//   --done-->
//             waiting, one version on
//
// Holders of a block see a record at different times, so what follows from the record may come to
// one that has not seen or not applied it yet. A primary takes nodes of the next step from the
// moment its own vote is complete: another holder may have applied and computed already. A backup
// takes the sum of the next step once it holds the one before; it verifies it and acknowledges once
// it is at that version, never earlier (so holders are at most one version apart). Everything that
// contradicts this is a failure that names block, step and member: nothing is guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "config/base/error.hpp"

namespace troupe::actors::protocol {

class primary_block {
 public:
  enum class state : std::uint8_t { collecting, reducing, forwarding, ready, applying };
  // What is to be done now; nothing is left out and nothing is asked for twice.
  enum class order : std::uint8_t {
    none,
    reduce,   // complete the trees; answer with reduced()
    forward,  // send the sum to all backups; answers come through held()
    vote,     // the block is ready: its sum belongs into the member's vote
    apply,    // update with the record; answer with applied()
    publish,  // send the parameters to every rank that holds the layer and is no holder
  };

  // inputs: every node of every source, of whatever member.
  primary_block(block_id block, std::uint64_t version, const std::vector<node_key>& inputs,
                const std::vector<member_id>& backups);

  block_id block() const { return block_; }
  std::uint64_t version() const { return version_; }
  state now() const { return state_; }
  const block_sum& sum() const { return sum_; }  // since reduced()
  const std::vector<member_id>& backups() const { return backups_; }

  // May a copy be made for one who from then on keeps up as a backup does? Not from the moment on
  // when a sum is on its way to the backups until it is applied.
  bool may_take_backup() const { return state_ == state::collecting || state_ == state::reducing; }
  // Requires may_take_backup(). The block's state at version() is copied to it now, and it has to
  // hold the next sum as well: so it is never more than one step behind.
  void add_backup(member_id who);

  result<order> node_arrived(std::uint64_t step, const node_key& key);
  result<order> reduced(std::uint64_t step, const block_sum& sum);
  result<order> held(member_id by, std::uint64_t step, const hash128& hash);
  result<order> decided(std::uint64_t step);
  result<order> applied(std::uint64_t step);
  // After the order publish was carried out: all nodes of the next step may be there already.
  order published();

 private:
  error wrong(std::uint64_t step, const std::string& what) const;
  order ready_if_all_hold();

  block_id block_;
  std::uint64_t version_;
  std::vector<node_key> inputs_;  // sorted
  std::vector<member_id> backups_;
  state state_ = state::collecting;
  std::set<node_key> missing_;
  std::set<node_key> early_;  // of the step after the one that is being decided or applied
  std::set<member_id> waiting_for_;
  block_sum sum_;
};

class backup_block {
 public:
  enum class order : std::uint8_t {
    none,
    verify,       // hash what has arrived; answer with verified()
    acknowledge,  // tell the primary that the sum is held
    apply,        // update with the record; answer with applied()
  };

  backup_block(block_id block, std::uint64_t version);
  // A copy is to come: it has no version before copied(). A sum may arrive before it.
  explicit backup_block(block_id block);

  bool here() const { return here_; }
  // The copy is here and verified. A sum that came before it may be acknowledged now.
  order copied(std::uint64_t version);

  block_id block() const { return block_; }
  std::uint64_t version() const { return version_; }
  const hash128& held_hash() const { return held_; }  // of the sum of step version() + 1

  result<order> sum_arrived(std::uint64_t step, const hash128& announced);
  // `hash`: of the bytes in memory. An unequal one is a failure.
  result<order> verified(std::uint64_t step, const hash128& hash);
  result<order> decided(std::uint64_t step);
  // After it the next step's sum may be acknowledged at once, if it came early.
  result<order> applied(std::uint64_t step);

 private:
  struct arrival {
    std::uint64_t step = 0;
    hash128 announced;
    bool verified = false;
  };
  error wrong(std::uint64_t step, const std::string& what) const;

  block_id block_;
  std::uint64_t version_;
  bool here_ = true;
  bool applying_ = false;
  std::vector<arrival> arrivals_;  // at most two, by step
  hash128 held_;
};

}  // namespace troupe::actors::protocol
