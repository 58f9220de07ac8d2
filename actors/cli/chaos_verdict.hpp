// What is said of a run of a scenario when it is over: measured, judged, kept and shown, the same
// for real processes, for a user's own run and for a simulated world.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "actors/chaos/judge.hpp"

namespace troupe::actors::cli {

struct judged_run {
  const chaos::scenario& what;
  chaos::run_mode mode;
  std::uint64_t seed;
  const chaos::run_facts& run;
  const std::optional<chaos::reference_facts>& reference;
  std::string directory, reference_directory;  // "": there is none
  std::string last_words = {};                 // of a run that ended badly
};

// Writes chaos.json into the directory, if there is one, and the verdict to `out`. 0: it passed; 1:
// it failed; else it could not be kept.
int tell_verdict(const judged_run& of, bool json, std::ostream& out, std::ostream& err);

}  // namespace troupe::actors::cli
