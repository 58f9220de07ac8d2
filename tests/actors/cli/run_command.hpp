// A command as main() calls it, and what it printed.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "actors/cli/commands.hpp"

namespace troupe::actors::cli {

struct outcome {
  int code;
  std::string out, err;
};

inline outcome run_command(int (*command)(arguments, std::ostream&, std::ostream&),
                           const std::vector<std::string>& words) {
  std::ostringstream out, err;
  const int code = command(words, out, err);
  return {code, out.str(), err.str()};
}

}  // namespace troupe::actors::cli
