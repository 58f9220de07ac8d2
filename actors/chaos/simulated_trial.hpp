// One run of a scenario in a simulated world: the same schedule, the same filter and the same judge
// as with real processes, in virtual time, with the protocol's invariants looking on at every
// point. What the product decides is real; the model, the files and the network are the
// simulation's (docs/simulation.md).
//
// A launcher is imitated: who has ended comes again in its slot after a moment.
#pragma once

#include <functional>
#include <string>

#include "actors/chaos/run_facts.hpp"

namespace troupe::actors::chaos {

struct simulated_settings {
  std::uint64_t steps = 60;
  std::uint32_t backups = 1, virtual_ranks = 8;
  duration heartbeat{}, suspect{}, evict{};
  std::function<void(const std::string&)> say;  // what happens, a line each; may be empty
};

// Requires that check_scenario() finds nothing in sim mode.
run_facts run_in_simulation(const scenario& s, std::uint64_t seed,
                            const simulated_settings& settings);

// Of a run without faults.
reference_facts reference_of(const run_facts& run);

}  // namespace troupe::actors::chaos
