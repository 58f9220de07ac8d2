// Do the parts of a scenario fit together, and can this mode do all of it? Asked before anything is
// started: whatever a mode cannot do is an error here and never skipped in silence.
#pragma once

#include "actors/chaos/scenario.hpp"
#include "config/base/error.hpp"

namespace troupe::actors::chaos {

// All problems, one a line (78).
status check_scenario(const scenario& s, run_mode mode);

// Can the mode see whether this invariant held?
bool is_seen(run_mode mode, std::string_view invariant);

}  // namespace troupe::actors::chaos
