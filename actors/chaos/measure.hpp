// From the facts of a run to its figures: for each fault the moments t0 to t7 as far as the records
// tell them, and from these the metrics, as docs/chaos.md defines them. What cannot be told is left
// out instead of guessed, so a limit on it fails.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/chaos/run_facts.hpp"

namespace troupe::actors::chaos {

struct fault_times {
  duration t0{};               // injected
  std::optional<duration> t1;  // the cause is known by name
  std::optional<duration> t2;  // the last survivor is free
  std::optional<duration> t3;  // the plan is published
  std::optional<duration> t5;  // first commit of a step never committed before
  std::optional<duration> t6;  // every block has its copies again
  std::optional<duration> t7;  // five steps in a row at full speed
  std::optional<duration> stall;
  std::uint64_t plans = 0;  // until the next fault
};

struct measured {
  std::vector<fault_times> faults;            // as in run_facts::faults
  std::map<std::string, double> metrics;      // seconds, counts, ratios; 0 or 1 for true or false
  std::vector<std::string> false_suspicions;  // who, and as which event
};

measured measure(const run_facts& run, const std::optional<reference_facts>& reference);

// The smallest value that a share of them does not exceed. Requires some.
double quantile(std::vector<double> values, double share);

}  // namespace troupe::actors::chaos
