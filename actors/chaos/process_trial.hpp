// One run of a scenario on real processes of this machine: starts `troupe train` as a child, looks
// at its records every few milliseconds, carries out what the schedule orders, ends everything that
// is left, and returns the facts. A scenario without faults is the undisturbed run.
//
// Whatever happens is bounded by the scenario's guard, and nothing outlives this: children are told
// to end if we end, orphans become our children, and what still runs at the end is killed and
// reported as left behind.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "actors/chaos/process_injector.hpp"
#include "actors/chaos/run_facts.hpp"
#include "config/base/clock.hpp"
#include "config/base/file.hpp"

namespace troupe::actors::chaos {

struct trial_settings {
  std::string program = "/proc/self/exe";
  std::string config;             // path
  std::vector<std::string> sets;  // "training.steps=60"
  std::string run_directory;      // must be new or empty
  int cores = 1;
  std::vector<std::string> more = {};  // further words for `troupe train`
  // A user's own run: what it prints goes where ours does and is not kept, no guard ends it, and
  // who wants to stop lets it end by itself.
  bool shown = false;
  std::function<void(const std::string&)> say;  // what happens, a line each
  std::function<bool()> stop;                   // true: end everything and come back with 75
};

struct trial_outcome {
  run_facts facts;
  std::string last_words;  // of the launcher's output, for a run that ended badly
};

// Requires that check_scenario() finds nothing in process mode.
result<trial_outcome> run_on_processes(const scenario& s, std::uint64_t seed,
                                       const trial_settings& settings, file_system& files,
                                       const clock_source& clock);

}  // namespace troupe::actors::chaos
