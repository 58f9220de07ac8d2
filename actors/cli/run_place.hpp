// The RUN of `troupe status` and `troupe stop`: a run directory or HOST:PORT, by default the newest
// run under outputs/.
#pragma once

#include <optional>
#include <string>

#include "actors/run_directory.hpp"
#include "actors/status_client.hpp"

namespace troupe::actors::cli {

struct run_place {
  std::optional<run_directory> directory;  // not given by HOST:PORT
  std::optional<comm::address> answers;    // at the address of the directory's run, and by its id
};

result<run_place> find_run(const std::string& text);
// The run directory below `folder` whose records changed last.
result<std::string> newest_run(const std::string& folder);

}  // namespace troupe::actors::cli
