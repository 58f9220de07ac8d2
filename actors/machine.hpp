// What a process knows of its machine and of itself, for people and for metrics. Nothing here may
// feed a decision about the training.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::actors {

std::string host_name();
int usable_cores();  // that this process may run on, at least 1

struct process_facts {
  double cpu_seconds = 0;            // user and system
  std::uint64_t resident_bytes = 0;  // now
  std::uint64_t peak_bytes = 0;      // resident, the most so far
  std::uint64_t open_files = 0;
  double start_seconds = 0;  // Unix time of its start
};
process_facts facts_of_this_process();
std::uint64_t peak_bytes_of_this_process();  // alone, since it costs next to nothing

}  // namespace troupe::actors
