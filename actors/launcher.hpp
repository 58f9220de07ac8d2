// The process that a user starts: it stands outside of the world, starts the local worker
// processes, watches them through pidfds and passes on what it is told. A worker runs in a process
// group of its own, so that Ctrl-C at a terminal reaches the launcher alone and is not taken for
// two notices.
//
// TERM, INT, USR1, USR2 and HUP (unless it was ignored at the start, as under nohup) mean: leave
// politely. The same again is the same notice, because batch systems send it twice; only a second
// INT means leave now.
#pragma once

#include <string>
#include <vector>

#include "config/base/error.hpp"

namespace troupe::actors {

// Starts this program again with `arguments` as one worker and waits for its end. Returns the exit
// code of the run: the worker's own, 75 if it was told to leave now, 69 if it died by a signal.
int run_worker_process(const std::vector<std::string>& arguments);

}  // namespace troupe::actors
