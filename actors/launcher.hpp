// The process that a user starts: it stands outside of the world, starts the local worker
// processes, watches them through pidfds and passes on what it is told. A worker runs in a process
// group of its own, so that Ctrl-C at a terminal reaches the launcher alone and is not taken for
// two notices. A launcher that is killed takes its workers along, politely (the kernel sends them
// TERM).
//
// TERM, INT, USR1, USR2 and HUP (unless it was ignored at the start, as under nohup) mean: leave
// politely. The same again is the same notice, because batch systems send it twice; only a second
// INT means leave now. What follows from a worker's end is decided in launch_outcome.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "actors/launch_outcome.hpp"

namespace troupe::actors {

struct worker_start {
  std::string name;                    // "worker-0", for messages
  std::vector<std::string> arguments;  // argv, with the program's name first
  std::vector<std::pair<std::string, std::string>> environment = {};  // besides the launcher's own
  std::string log = {};                                               // its log file, for messages
};

struct launcher_hooks {
  std::string program = "/proc/self/exe";
  launch_patience patience = {};
  std::function<void(const std::string& line)> say = {};  // empty: to stderr
};

// Starts all workers and returns the run's exit code when the last of them has ended: 0 or 75 where
// all agree, the first cause's code where one ended badly, 69 where one was killed.
int run_worker_processes(const std::vector<worker_start>& workers, const launcher_hooks& hooks);

// How many of `cores` each of `workers` takes: as even as can be, at least one.
std::vector<int> share_cores(int cores, int workers);

}  // namespace troupe::actors
