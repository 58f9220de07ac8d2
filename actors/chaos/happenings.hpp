// What a schedule is told and what it answers: the two vocabularies between a watcher (simulator or
// processes) and the pure decision of what goes wrong when.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/chaos/scenario.hpp"
#include "actors/chaos/target_lookup.hpp"

namespace troupe::actors::chaos {

// One injection of a fault: its id, and the how-manieth of it, from 1.
struct occurrence {
  std::string fault;
  std::uint64_t number = 0;
  friend auto operator<=>(const occurrence&, const occurrence&) = default;
};

// Told.
struct time_passed {};
struct step_begins {  // again for a step that is done again
  std::uint64_t step = 0;
};
struct step_committed {
  std::uint64_t step = 0;
};
struct point_reached {
  named_point point;  // with its k, where points of this name count
  std::uint64_t step = 0;
  member_id who;
  std::optional<member_id> receiver = {};  // of the message that was sent there
};
struct event_seen {
  std::string name;  // as in `on`
};
struct fault_began {  // there is proof
  occurrence which;
};
struct fault_failed {  // it did not happen after all
  occurrence which;
};
struct fault_over {  // by itself: its process ended, for example
  occurrence which;
};
// What was armed ahead has struck: a worker was at the point and has proven it.
struct armed_struck {
  occurrence which;
  member_id who;
  std::uint64_t step = 0;
  std::string point;
};
using happening = std::variant<time_passed, step_begins, step_committed, point_reached, event_seen,
                               fault_began, fault_failed, fault_over, armed_struck>;

// Answered.
struct injection {
  occurrence which;
  fault_kind kind = fault_kind::kill;
  chosen whom;  // a join has nobody
  parameters params;
  std::optional<duration> until;  // by time, on the teller's clock; otherwise an ending comes
  std::string why;                // "step 17 begins", for the report
  std::uint64_t step = 0;         // the one in progress
  bool must_happen = true;
  bool struck = false;  // it was armed and is done: there is nothing to carry out
};
// What is to be given to workers ahead, for moments that only they see in time.
struct armed_fault {
  occurrence which;
  fault_kind kind = fault_kind::kill;
  chosen whom;
  parameters params;
  named_point point;
  std::vector<step_range> steps;
  std::optional<duration> lasts;
  friend bool operator==(const armed_fault& a, const armed_fault& b) {
    return a.which == b.which && a.whom.members == b.whom.members && a.whom.links == b.whom.links &&
           a.steps == b.steps;
  }
};
struct ending {
  occurrence which;
  fault_kind kind = fault_kind::kill;
};
struct refusal {
  std::string fault;
  std::string why;
  std::uint64_t step = 0;
};
struct orders {
  std::vector<injection> begin;
  std::vector<ending> end;  // carry these out first
  std::vector<refusal> refused;
  bool quiet_begins = false;
};

}  // namespace troupe::actors::chaos
