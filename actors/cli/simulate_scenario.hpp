// `troupe simulate SCENARIO`: a scenario in simulated worlds instead of on real processes.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>

namespace troupe::actors::cli {

// `seeds`: the first and the last; unset: the scenario's. 0: all passed, 1: one did not, and it is
// the last that ran.
int simulate_scenario(const std::string& path,
                      const std::optional<std::pair<std::uint64_t, std::uint64_t>>& seeds,
                      bool json, std::ostream& out, std::ostream& err);

}  // namespace troupe::actors::cli
