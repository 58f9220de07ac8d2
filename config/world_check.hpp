// Checks across the keys of [elastic], [fault_tolerance], [comm] and [metrics]: times that must
// follow one another, and addresses. A listener's address is read again where it is opened; here it
// is only held to the form HOST:PORT, so that a mistake is told with its key and its line before
// anything starts.
#pragma once

#include <vector>

#include "config/check.hpp"

namespace troupe::config {

std::vector<problem> world_problems(const settings& derived);

}  // namespace troupe::config
