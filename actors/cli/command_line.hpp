// What all commands share: parsing with CLI11, help on stdout, mistakes as one line on stderr with
// the nearest known word, exit code 64, and the bare overrides `--section.key=value` that every
// trainer's user expects.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "config/base/error.hpp"

namespace troupe::actors::cli {

class command_line {
 public:
  // `name`: "train"; `examples`: a line each, shown above the options.
  command_line(const std::string& name, const std::string& summary, const std::string& examples);

  CLI::App& app() { return app_; }
  // Nothing: go on. Otherwise the exit code to end with: 0 after help, 64 after a mistake that was
  // reported.
  std::optional<int> parse(std::span<const std::string> args, std::ostream& out, std::ostream& err);

 private:
  CLI::App app_;
};

struct split_arguments {
  std::vector<std::string> rest;
  std::vector<std::string> overrides;  // "section.key=value"; "section.key" alone means true
};
// Takes `--a.b=c`, `--a.b c` and `--a.b` out of the arguments. The value of the second form is the
// next argument, unless that starts with "--" or the key is a boolean: those say `--a.b=false`.
split_arguments take_overrides(std::span<const std::string> args);

// Says what went wrong in one line and returns its exit code.
int fail(const error& failure, std::ostream& err);

// All environment variables as NAME=value.
std::vector<std::string> environment();

}  // namespace troupe::actors::cli
