// `troupe config check|show|explain|reference`: says what a configuration means, without running
// it.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "config/base/nearest.hpp"
#include "config/known_names.hpp"
#include "config/load.hpp"
#include "config/print.hpp"

namespace troupe::actors::cli {
namespace {

constexpr std::string_view examples =
    "  troupe config show examples/quickstart.toml --training.steps=100\n"
    "  troupe config explain training.micro_batch_size\n";

// Problems of a config begin with file and line, not with the program.
int tell(const error& e, std::ostream& err) {
  err << e.message << '\n';
  return static_cast<int>(e.code);
}
int misuse(const std::string& message, std::ostream& err) {
  return tell({exit_code::usage, "troupe: " + message + " (see troupe config --help)"}, err);
}

int explain(const std::string& key, std::ostream& out, std::ostream& err) {
  if (key.empty()) {
    out << config::overview();
    return 0;
  }
  const auto text = config::explain(key);
  if (!text) return misuse(fmt::format("{}: {}", key, config::explain_unknown(key)), err);
  out << *text;
  return 0;
}

int check_or_show(bool check, bool json, const config::sources_of_settings& from, std::ostream& out,
                  std::ostream& err) {
  const auto loaded = config::load(from);
  if (!loaded) return tell(loaded.failure(), err);
  if (check) {
    out << from.file << ": a valid configuration\n";
  } else if (json) {
    out << config::show_json(loaded->settings);
  } else {
    out << config::show_toml(loaded->settings, loaded->origins);
  }
  return 0;
}

}  // namespace

int config_command(arguments args, std::ostream& out, std::ostream& err) {
  split_arguments split = take_overrides(args);
  command_line line("config", "Says what a configuration means, without running it.",
                    std::string(examples));
  std::string action, subject;
  std::vector<std::string> sets;
  bool json = false;
  line.app().add_option("ACTION", action,
                        "check: is it valid; show: print the effective values as TOML; explain: "
                        "print what a key means; reference: print the page of all keys");
  line.app().add_option("CONFIG|KEY", subject,
                        "for check and show a TOML file; for explain a key, a table, another "
                        "trainer's name for a key, or nothing for a list of all");
  line.app()
      .add_option("--set", sets, "section.key=value; --section.key=value is the same")
      ->allow_extra_args(false);
  line.app().add_flag("--json", json, "show prints JSON");
  if (args.empty()) {
    err << line.app().help();
    return static_cast<int>(exit_code::usage);
  }
  if (const auto finished = line.parse(split.rest, out, err)) return *finished;

  const std::vector<std::string> actions{"check", "show", "explain", "reference"};
  if (std::ranges::find(actions, action) == actions.end()) {
    const auto near = nearest(action, actions);
    return misuse(fmt::format("config takes check, show, explain or reference, not \"{}\"{}",
                              action, near ? fmt::format("; did you mean {}?", *near) : ""),
                  err);
  }
  const bool loads = action == "check" || action == "show";
  split.overrides.insert(split.overrides.end(), sets.begin(), sets.end());
  if (json && action != "show") return misuse("--json belongs to config show", err);
  if (!loads && !split.overrides.empty()) {
    return misuse("settings belong to config check and config show", err);
  }
  if (action == "explain") return explain(subject, out, err);
  if (loads == subject.empty()) {
    return misuse(loads ? fmt::format("config {} needs a TOML file", action)
                        : "config reference takes no argument",
                  err);
  }
  if (loads) {
    return check_or_show(action == "check", json, {subject, {}, environment(), split.overrides},
                         out, err);
  }
  out << config::reference_page();
  return 0;
}

}  // namespace troupe::actors::cli
