// The program: finds the command and hands over. Locale and environment stay untouched; nothing
// here computes.

#include <algorithm>
#include <array>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "actors/cli/commands.hpp"
#include "actors/version.hpp"
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
    command{"train", "train a model, or go on with a run", train_command},
    command{"status", "what a run does now", status_command},
    command{"scale", "more or fewer workers for a run that trains", scale_command},
    command{"drain", "let one worker of a run leave", drain_command},
    command{"stop", "ask a run to save and end", stop_command},
    command{"generate", "continue a prompt with a trained model", generate_command},
    command{"eval", "loss of a trained model on a data set", eval_command},
    command{"diff", "compare two runs, bit for bit", diff_command},
    command{"config", "check, show or explain a configuration", config_command},
    command{"data", "pack text into token files, tell what data files hold", data_command},
    command{"plan", "show who would compute and keep what", plan_command},
    command{"simulate", "run worlds of simulated members and check them", simulate_command},
    command{"chaos", "run a scenario of faults on real processes and judge it", chaos_command},
    command{"bench", "measure the speed of this machine", bench_command},
    command{"worker", "one worker of a run (started by train)", worker_command},
};

void print_usage(std::ostream& to) {
  to << "usage: troupe COMMAND ...\n\n"
        "  troupe train examples/quickstart.toml\n"
        "  troupe config explain training.micro_batch_size\n\n"
        "commands:\n";
  for (const command& c : commands)
    to << "  " << std::left << std::setw(10) << c.name << c.summary << "\n";
  to << "\n`troupe COMMAND --help` says more; `troupe --version` says what this is.\n";
}

int dispatch(arguments args) {
  constexpr int usage = static_cast<int>(exit_code::usage);
  if (args.empty()) {
    print_usage(std::cerr);
    return usage;
  }
  const std::string& word = args.front();
  if (word == "--help" || word == "-h" || word == "help") {
    print_usage(std::cout);
    return 0;
  }
  if (word == "--version") {
    std::cout << version_details();
    return 0;
  }
  const auto found =
      std::ranges::find_if(commands, [&](const command& c) { return word == c.name; });
  if (found != commands.end()) return found->run(args.subspan(1), std::cout, std::cerr);
  std::vector<std::string> names;
  for (const command& c : commands) names.emplace_back(c.name);
  std::cerr << "troupe: there is no command \"" << word << "\"";
  if (const auto near = nearest(word, names)) std::cerr << "; did you mean " << *near << "?";
  std::cerr << " (see troupe --help)\n";
  return usage;
}

}  // namespace
}  // namespace troupe::actors::cli

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  try {
    const int code = troupe::actors::cli::dispatch(args);
    if (std::cout.flush() || code != 0) return code;
    std::cerr << "troupe: the output could not be written\n";
    return static_cast<int>(troupe::exit_code::io);
  } catch (const std::bad_alloc&) {
    std::cerr << "troupe: out of memory; try a smaller training.micro_batch_size\n";
    return static_cast<int>(troupe::exit_code::io);
  } catch (const std::exception& trouble) {
    std::cerr << "troupe: defect: " << trouble.what() << "\n";
    return static_cast<int>(troupe::exit_code::defect);
  }
}
