// The report of a scenario, for programs (chaos.json) and for people. It keeps every moment of
// every fault, so that others can compute figures of their own, and names the scenario's hash, the
// build and the seed: a result whose hash does not match its file does not count.
#pragma once

#include <optional>
#include <string>

#include "actors/chaos/judge.hpp"
#include "config/base/json.hpp"

namespace troupe::actors::chaos {

struct chaos_report {
  const scenario& what;
  run_mode mode;
  std::uint64_t seed;
  std::string version, run_directory, reference_directory;  // "": no reference
  const run_facts& run;
  const measured& figures;
  const verdict& outcome;
};

// Adds all fields; for a page or one line.
void put(json_writer& to, const chaos_report& r);

std::string to_text(const chaos_report& r);

}  // namespace troupe::actors::chaos
