// Pass or fail. Every demand of a scenario becomes one check with its outcome in words: that its
// faults happened, that the run ended as expected and in time, the limits of [expect], the bits and
// the ledger against the undisturbed run, the invariants that can be seen from records. A demand
// that could not be measured has failed: silence is no proof.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/chaos/measure.hpp"
#include "actors/chaos/run_facts.hpp"
#include "actors/chaos/scenario.hpp"

namespace troupe::actors::chaos {

struct check {
  std::string name;  // "fault head", "exit", "bits", "S-3", "unblock_p99"
  bool passed = false;
  std::string words;
};

struct verdict {
  bool passed = false;
  std::vector<check> checks;
  std::vector<std::string> unseen;  // invariants that this mode cannot see
};

verdict judge(const scenario& s, run_mode mode, const run_facts& run, const measured& figures,
              const std::optional<reference_facts>& reference);

}  // namespace troupe::actors::chaos
