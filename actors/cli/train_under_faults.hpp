// `troupe train CONFIG --chaos SCENARIO`: the user's own run, with the faults of a scenario in it.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::cli {

struct own_run {
  std::string config;              // path; counts instead of the scenario's
  std::vector<std::string> sets;   // "training.steps=60"; instead of the scenario's
  std::vector<std::string> words;  // further ones for the run
  std::string directory;
  std::optional<int> workers;  // as many as the scenario has members, or unset
};

// The verdict's exit code where the run ended as it should, else the run's own.
int train_under_faults(const std::string& scenario, const own_run& run, std::ostream& out,
                       std::ostream& err);

}  // namespace troupe::actors::cli
