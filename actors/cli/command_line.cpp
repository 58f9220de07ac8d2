#include "actors/cli/command_line.hpp"

#include <unistd.h>

#include <algorithm>

#include "config/base/error.hpp"
#include "config/base/nearest.hpp"
#include "config/options.hpp"

namespace troupe::actors::cli {
namespace {

std::vector<std::string> long_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// "unknown option --foo; did you mean --for?"
std::string explain_extras(const CLI::App& app, const std::vector<std::string>& extras) {
  const std::string& word = extras.front();
  if (word.empty() || word.front() != '-') return "unexpected argument \"" + word + "\"";
  const std::string name = word.substr(0, word.find('='));
  std::string text = "unknown option " + name;
  const std::vector<std::string> known = long_options(app);
  if (const auto near = nearest(name, known)) text += "; did you mean " + *near + "?";
  return text;
}

bool is_override(const std::string& argument) {
  if (argument.size() < 4 || argument.compare(0, 2, "--") != 0) return false;
  const std::string name = argument.substr(2, argument.find('=') - 2);
  return name.find('.') != std::string::npos;
}

// A boolean key alone means true, so the word behind it is not its value.
bool is_switch(const std::string& name) {
  const config::option* o = config::find_option(name);
  return o != nullptr && o->kind == config::kind::boolean;
}

}  // namespace

command_line::command_line(const std::string& name, const std::string& summary,
                           const std::string& examples)
    : app_(summary + "\n\nExamples:\n" + examples, "troupe " + name) {
  app_.allow_extras();
  app_.option_defaults()->always_capture_default();
}

std::optional<int> command_line::parse(std::span<const std::string> args, std::ostream& out,
                                       std::ostream& err) {
  constexpr int usage = static_cast<int>(exit_code::usage);
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  if (std::ranges::find(args, "-h") != args.end() ||
      std::ranges::find(args, "--help") != args.end()) {
    out << app_.help();
    return 0;
  }
  try {
    app_.parse(reversed);
    if (const std::vector<std::string> extras = app_.remaining(); !extras.empty()) {
      err << "troupe: " << explain_extras(app_, extras) << " (see " << app_.get_name()
          << " --help)\n";
      return usage;
    }
  } catch (const CLI::ParseError& mistake) {
    err << "troupe: " << mistake.what() << " (see " << app_.get_name() << " --help)\n";
    return usage;
  }
  return std::nullopt;
}

split_arguments take_overrides(std::span<const std::string> args) {
  split_arguments split;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!is_override(args[i])) {
      split.rest.push_back(args[i]);
      continue;
    }
    std::string text = args[i].substr(2);
    const bool value_follows = text.find('=') == std::string::npos && !is_switch(text) &&
                               i + 1 < args.size() && args[i + 1].compare(0, 2, "--") != 0;
    if (value_follows) text += "=" + args[++i];
    split.overrides.push_back(text);
  }
  return split;
}

int fail(const error& failure, std::ostream& err) {
  err << "troupe: " << failure.message << "\n";
  return static_cast<int>(failure.code);
}

std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** at = environ; *at != nullptr; ++at) all.emplace_back(*at);
  return all;
}

}  // namespace troupe::actors::cli
