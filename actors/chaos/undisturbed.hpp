// The undisturbed run of a scenario's config, which its bits and rates are compared with: run once
// and kept in a folder of its own beside the runs, whose name is the hash of all that decides it.
#pragma once

#include <string>

#include "actors/chaos/process_trial.hpp"

namespace troupe::actors::chaos {

// `settings.run_directory` is the reference's own. A whole reference there is read; anything less
// is removed and run again.
result<reference_facts> undisturbed_run(const scenario& s, const trial_settings& settings,
                                        file_system& files, const clock_source& clock);

}  // namespace troupe::actors::chaos
