// One [[fault]] and the [random] table of a scenario file.
#pragma once

#include <optional>
#include <string>

#include "actors/chaos/scenario.hpp"
#include "actors/chaos/scenario_fields.hpp"

namespace troupe::actors::chaos {

// Nothing where id or kind are missing; every problem becomes a complaint.
std::optional<fault> read_fault(const toml_node& table, const std::string& path, complaints& to);
random_faults read_random(const toml_node& table, complaints& to);

}  // namespace troupe::actors::chaos
