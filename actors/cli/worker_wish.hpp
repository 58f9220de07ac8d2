// Where a worker process wants to be, from the options of `troupe worker`: which slot, and whether
// it may begin a world or only enters one.
//
// What its launcher starts is told all of it. What a person starts finds it out: on a directory
// that nobody holds, worker-0 begins the run, as `troupe train` would; everybody else, and
// everybody on a directory that is held, enters the world that is or will be there, and leaves the
// lock to whoever began it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/run_directory.hpp"
#include "actors/training_run.hpp"

namespace troupe::actors::cli {

struct worker_wish {
  std::string name = {};                    // --name; "": any
  std::optional<std::uint32_t> world = {};  // --world
  int lock_fd = -1;                         // --lock-fd; -1: started by a person
  bool joins = false;                       // --join

  // Exit code 64: there is no such slot.
  status check() const;
  result<run_directory> enter(file_system& files, const std::string& path,
                              const clock_source& clock) const;
  // All but its life. Without a name it is the lowest slot that the newest plan leaves free.
  // Another one may choose the same at the same time: the coordinator takes the first and refuses
  // the other.
  result<place_in_world> place_in(file_system& files, const run_directory& run) const;
};

std::string name_of_slot(std::uint32_t slot);  // "worker-3"
std::optional<std::uint32_t> slot_of(const std::string& name);

}  // namespace troupe::actors::cli
