// `troupe stop`: asks the run's launcher to stop at the next step's end. It saves and ends with 75.

#include <signal.h>

#include <cerrno>
#include <cstring>

#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/run_directory.hpp"

namespace troupe::actors::cli {

int stop_command(arguments args, std::ostream& out, std::ostream& err) {
  command_line line("stop", "Asks a run on this machine to save and end (its exit code is 75).",
                    "  troupe stop outputs/quickstart\n");
  std::string path;
  line.app().add_option("RUN", path, "run directory")->required();
  if (const auto code = line.parse(args, out, err)) return *code;
  result<run_directory> run = run_directory::open(real_file_system(), path);
  if (!run) return fail(run.failure(), err);
  result<int> holder = holder_of(path);
  if (!holder) return fail(holder.failure(), err);
  if (*holder == 0) {
    err << "troupe: nothing runs in " << path << "\n";
    return 0;
  }
  if (*holder < 0 || kill(*holder, SIGTERM) != 0) {
    err << "troupe: cannot reach the run in " << path << " (process " << *holder
        << "): " << std::strerror(*holder < 0 ? EAGAIN : errno) << "\n";
    return static_cast<int>(exit_code::cannot_use);
  }
  out << "asked process " << *holder << " to stop; it saves and ends after the step it is in\n";
  return 0;
}

}  // namespace troupe::actors::cli
