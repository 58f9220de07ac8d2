// A plan is one generation of the world: who its members are, who coordinates, which virtual ranks
// each of them computes and which blocks it holds. A plan is a value: it is never edited, the next
// one replaces it. Its text form is what the chain of plans in the run directory
// keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/decision.hpp"
#include "config/base/ids.hpp"
#include "config/base/tree.hpp"

namespace troupe::actors::protocol {

// A block of a layer's flat parameter vector; layers and blocks count from 0 in model order.
struct block_id {
  std::uint32_t layer = 0, block = 0;
  friend auto operator<=>(const block_id&, const block_id&) = default;
};

struct plan_member {
  member_id id;
  incarnation life;
  std::string name;     // of its slot, for people: "worker-0"
  std::string host;     // host name, for people
  std::string domain;   // what is lost together with it
  std::string address;  // of its control lane, HOST:PORT
  bool computes = true;
  bool store = true;  // sees the run directory, so it may be the coordinator
  // The virtual ranks it computes: [first_leaf, first_leaf + leaves); none: a spare.
  std::uint32_t first_leaf = 0, leaves = 0;
  std::uint64_t threads = 1;  // that it computes with
  friend auto operator<=>(const plan_member&, const plan_member&) = default;
};

// Consecutive blocks of a layer with the same holders.
struct placed_blocks {
  std::uint32_t layer = 0, first_block = 0, blocks = 0;
  member_id primary;
  std::vector<member_id> backups;  // sorted by id
  friend auto operator<=>(const placed_blocks&, const placed_blocks&) = default;
};

struct plan {
  std::string run_id;
  generation number;
  std::string parent;                // hash of the plan before, "" for plan 0
  std::vector<plan_member> members;  // sorted by id
  member_id coordinator;
  std::uint64_t base = 0;                // finished steps that it starts from
  std::uint32_t virtual_ranks = 0;       // leaves of the tree
  std::vector<placed_blocks> placement;  // sorted by layer and block; every block exactly once
  bool exposed = false;  // some block has all its holders in one domain, or only one holder
  std::string verdict;   // "start" or "change"
  std::string reason;    // in words
  // The newest records up to base, in order: at least all whose lines are not known to be written.
  // Empty in a plan that starts a run.
  std::vector<record_notice> records;
  friend bool operator==(const plan&, const plan&) = default;

  const plan_member* find(member_id id) const;  // nullptr: not a member
  // The entry that covers the block. Requires that there is one.
  const placed_blocks& holders_of(block_id block) const;
};

// All in the plan's order.
std::vector<block_id> blocks_primary(const plan& p, member_id id);
std::vector<block_id> blocks_backed_up(const plan& p, member_id id);
// The tree nodes that a member completes by itself.
std::vector<tree_node> nodes_of(const plan& p, const plan_member& m);

}  // namespace troupe::actors::protocol
