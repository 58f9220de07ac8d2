// `troupe stop`: asks a run to save and end after the step it is in; its exit code is 75. A
// launcher on this machine gets a signal. Where the lock is held by nobody that this machine knows,
// the run is asked at its port, with its secret.
#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <cstring>

#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/run_place.hpp"

namespace troupe::actors::cli {
namespace {

constexpr std::uint64_t secret_limit = 4096;

int ask_at_port(const comm::address& at, const std::string& secret_file, std::ostream& out,
                std::ostream& err) {
  result<std::string> secret = read_file(real_file_system(), secret_file, secret_limit);
  if (!secret) return fail(secret.failure(), err);
  while (!secret->empty() && (secret->back() == '\n' || secret->back() == '\r')) secret->pop_back();
  result<http_answer> answer = http_post(at, "/api/stop", *secret);
  if (!answer) return fail(answer.failure(), err);
  if (answer->code != 202) {
    return fail(
        {exit_code::cannot_use, fmt::format("{} refused to stop: {}", to_text(at), answer->body)},
        err);
  }
  out << "asked " << to_text(at) << " to stop; it saves and ends after the step it is in\n";
  return 0;
}

}  // namespace

int stop_command(arguments args, std::ostream& out, std::ostream& err) {
  command_line line("stop", "Asks a run to save and end (its exit code is 75).",
                    "  troupe stop outputs/quickstart\n"
                    "  troupe stop gpu03:29650 --secret outputs/a/secret\n");
  std::string text, secret_file;
  line.app().add_option("RUN", text, "run directory or HOST:PORT; the newest below outputs/");
  line.app().add_option("--secret", secret_file, "file with the run's secret (RUN/secret)");
  if (const auto code = line.parse(args, out, err)) return *code;
  result<run_place> place = find_run(text);
  if (!place) return fail(place.failure(), err);
  const std::string run = place->directory ? place->directory->path() : text;
  int holder = 0;
  if (place->directory) {
    const std::string& path = place->directory->path();
    result<int> held = holder_of(path);
    if (!held) return fail(held.failure(), err);
    holder = *held;
    if (holder > 0 && holds_lock(holder, path)) {
      if (kill(holder, SIGTERM) == 0) {
        out << "asked process " << holder
            << " to stop; it saves and ends after the step it is in\n";
        return 0;
      }
      if (!place->answers) {
        return fail({exit_code::cannot_use, fmt::format("cannot reach process {} that runs {}: {}",
                                                        holder, path, std::strerror(errno))},
                    err);
      }
    }
    if (secret_file.empty()) secret_file = place->directory->file("secret");
  }
  if (place->answers) {
    if (!secret_file.empty()) return ask_at_port(*place->answers, secret_file, out, err);
    return fail({exit_code::usage, "a run at HOST:PORT is stopped with its secret: --secret FILE"},
                err);
  }
  if (holder == 0) {
    err << "troupe: nothing runs in " << run << "\n";
    return 0;
  }
  return fail({exit_code::cannot_use,
               fmt::format("{} is held by process {}, which is not on this machine or gone, and "
                           "nobody answers at its port; send it TERM where it runs",
                           run, holder)},
              err);
}

}  // namespace troupe::actors::cli
