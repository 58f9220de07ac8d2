// The process that a user starts: it stands outside of the world, starts the local worker
// processes, watches them through pidfds and passes on what it is told. A worker runs in a process
// group of its own, so that Ctrl-C at a terminal reaches the launcher alone and is not taken for
// two notices. A launcher that is killed takes its workers along, politely (the kernel sends them
// TERM).
//
// TERM, INT, USR1, USR2 and HUP (unless it was ignored at the start, as under nohup) mean: leave
// politely. The same again is the same notice, because batch systems send it twice; only a second
// INT means leave now. What people ask for with `troupe scale` and `troupe drain` comes
// through the command box; world_order decides it, and it is carried out before it is answered.
// Single workers are told over a line of their own. What follows from a worker's end is decided in
// launch_outcome; a process that takes the place of a lost one is started like it, with some
// further words that say so.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/command_box.hpp"
#include "actors/launch_outcome.hpp"
#include "actors/launcher_line.hpp"
#include "config/base/ids.hpp"

namespace troupe::actors {

struct worker_start {
  std::string name;                    // "worker-0", for messages
  std::vector<std::string> arguments;  // argv, with the program's name first
  std::vector<std::pair<std::string, std::string>> environment = {};  // besides the launcher's own
  std::string log = {};                                               // its log file, for messages
  std::vector<std::string> again = {};  // further arguments of a process that takes its place
};

// One of those that the newest plan names.
struct life_in_plan {
  std::string name;  // of its slot
  incarnation life;
  bool coordinates = false;
};

struct launcher_hooks {
  std::string program = "/proc/self/exe";
  launch_patience patience = {};
  restart_rule restarts = {};
  // A higher one each time, for the next process: passed on to it with --life. Needed to know it
  // again in the newest plan, which is read when a worker has ended (nothing: not to be had). Both
  // may be empty; then all that run count as members.
  std::function<incarnation()> next_life = {};
  std::function<std::optional<std::vector<life_in_plan>>()> newest_plan = {};
  std::function<void(const std::string& line)> say = {};  // empty: to stderr
  // Where people ask for more or fewer workers; nothing: they cannot. Outlives the call.
  const command_box* commands = nullptr;
  size_limits limits = {};
  // The start of one more worker, in a slot behind the last one, in a world of so many.
  std::function<worker_start(std::size_t slot, std::uint64_t workers)> one_more = {};
};

// Starts all workers, and lost ones again, and returns the run's exit code when the last of them
// has ended: 0 or 75 where those that stayed to the end agree, else the first cause's code, 69
// where that one was killed.
int run_worker_processes(const std::vector<worker_start>& workers, const launcher_hooks& hooks);

// How many of `cores` each of `workers` takes: as even as can be, at least one.
std::vector<int> share_cores(int cores, int workers);

}  // namespace troupe::actors
