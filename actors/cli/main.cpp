// The program: finds the command and hands over. Locale and environment stay untouched; nothing here computes.

#include <array>
#include <iostream>
#include <string>
#include <vector>

#include "actors/cli/commands.hpp"
#include "config/base/error.hpp"
#include "config/base/nearest.hpp"

namespace troupe::actors::cli {
namespace {

struct command {
  const char* name;
  const char* summary;
  int (*run)(arguments, std::ostream&, std::ostream&);
};

constexpr std::array commands = {
    command{"bench", "measure the speed of this machine", bench_command},
    command{"data", "pack text into token files, tell what data files hold", data_command},
};

}  // namespace
}  // namespace troupe::actors::cli

int main(int argc, char** argv) {
  using namespace troupe::actors::cli;
  std::vector<std::string> args(argv + 1, argv + argc);
  for (const command& c : commands) {
    if (!args.empty() && args.front() == c.name) return c.run(std::span(args).subspan(1), std::cout, std::cerr);
  }
  return 64;
}
