// What events.jsonl tells of the time before: whoever takes over the records of a run that is under
// way counts on from here. A pure function of the file's text, so that the process that coordinated
// before may be gone without a word.
//
// The newest start is what counts: a line "generation" with "start" true. Lines that cannot be read
// are passed over: they are for people, and no run should end for want of one.
//
// Not chosen: a file of its own with the counters. It would be a second truth, written at another
// moment than the events, and would have to be repaired as well.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/clock.hpp"

namespace troupe::actors {

// From the loss of members to the first commit of a step that was never committed before. Times
// begin with the first evidence of the loss.
struct recovery {
  std::uint64_t id = 0;            // number of the plan that the loss led to
  std::uint64_t from = 0, to = 0;  // generations before, and in force when it was over
  std::vector<std::string> lost;   // names of members
  bool step_redone = false;        // a step was under way that nobody had decided
  std::uint64_t step = 0;          // that was committed first
  double unblock_ms = 0;           // until the last survivor was free
  double recover_ms = 0;
  double noticed = 0;       // [s since the start]
  std::string reason = {};  // in words
};

struct run_history {
  struct validation {
    double loss = 0;
    std::uint64_t tokens = 0;
  };

  // Of the newest line; `wall` is missing where there is none.
  double mono = 0;
  std::optional<wall_time> wall;
  // Of the newest start.
  bool started = false;
  std::uint64_t first_step = 0, first_generation = 0;
  std::uint64_t generations = 0, last_generation = 0;
  std::uint64_t world_min = 0, world_max = 0;  // members that computed
  std::uint64_t committed_steps_lost = 0;
  std::uint64_t attempts_redone = 0;  // steps that were under way when a plan began
  std::vector<recovery> recoveries, under_way;
  std::map<std::string, std::uint64_t> losses;  // member, and the newest recovery it was lost in
  std::optional<double> val_loss;
  std::string weights_hash, state_hash;
  double peak_flops = 0;
  std::string peak_source;
  // Of all starts, by step.
  std::map<std::uint64_t, validation> validations;

  // Steps of this start that were computed more than once, if it has come to this step.
  std::uint64_t steps_redone(std::uint64_t reached) const;

  // Where plans began, and how many steps had lines then.
  struct beginning {
    std::uint64_t from_step = 0, recorded = 0;
  };
  std::vector<beginning> beginnings;
};

run_history read_history(std::string_view events);

}  // namespace troupe::actors
