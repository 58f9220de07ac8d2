// From who is there to who does what: the next plan, a pure function of its input. It is total:
// whatever the input, it returns a plan; and it does not depend on the order in which candidates
// are listed.
//
// Members that may compute share the virtual ranks (leaf_ranges.hpp); all of those that compute are
// primaries, evenly by bytes (block_placement.hpp). Members beyond the virtual ranks and members
// that never compute are spares. A spare holds backups and is never primary: a primary's own tree
// nodes and parameters need not travel, and a spare has none of its own; with the backups of a
// lost member in memory it is the nearest one to take over.
//
// With a previous plan, who held a block goes on holding it wherever balance and domains allow.
// Only the same life of a member holds what it held: a new process in the same slot starts empty.
// What the plan asks for is the aim: plan_change.hpp says what can be published before copies are
// made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/leaf_ranges.hpp"
#include "actors/protocol/plan.hpp"

namespace troupe::actors::protocol {

struct candidate {
  member_id id;
  incarnation life;
  std::string name, host;
  std::string domain;  // empty: the host
  std::string address;
  bool store = true;         // sees the run directory
  bool computes = true;      // false: a member that never computes
  double speed = 1;          // any unit, the same for all; not positive: unknown, taken as 1
  std::uint64_t memory = 0;  // bytes it has for blocks; 0: no limit known
};

enum class spare_policy : std::uint8_t {
  backups,  // spares hold backups, ready to take over
  none,     // spares hold nothing
};

struct planner_input {
  std::string run_id;
  std::vector<candidate> candidates;  // in any order; of two lives of a member the later counts
  std::vector<std::vector<std::uint32_t>> layers;  // elements of each block
  std::uint32_t virtual_ranks = 1;
  std::uint32_t backups = 1;
  spare_policy spares = spare_policy::backups;
  std::optional<member_id> coordinator;  // preferred; else the previous one, else the lowest
  double node_cost = usual_node_cost;
  generation number;
  std::string parent;
  std::uint64_t base = 0;
  std::string verdict = "start", reason;
  std::optional<plan> previous;
};

// Bytes that a holder keeps of an element: parameter, two moments, and the sums of two steps.
inline constexpr std::uint64_t holder_bytes_per_element = 20;

plan make_plan(const planner_input& input);

// Why losing a single domain, or a single member, would lose some block; empty if it would not.
std::string why_exposed(const plan& p);
// Sets `exposed`, and the reason with why it is exposed.
void give_reason(plan& p, const std::string& reason);

// Consecutive blocks of a layer with the same holders become one entry. `holders`: one entry of one
// block each, in order.
std::vector<placed_blocks> joined(const std::vector<placed_blocks>& blocks);

}  // namespace troupe::actors::protocol
