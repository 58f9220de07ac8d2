// One value of one option, between the text a person wrote and the member of `settings`.
//
// Whatever the source (file, environment, command line, preset, default), a value is first read as
// written, then fitted to its option: `1` may stand where a float belongs; `1e3` may not stand
// where a whole number belongs, a quoted number never may, and nothing is rounded or clipped.
// Reading and printing use no locale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "config/base/error.hpp"

namespace troupe::config {

struct option;
struct bounds;

// monostate: unset.
using value = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

// A value and the way it was spelled, for messages.
struct written {
  config::value value;
  std::string spelling;
};

// What a person means by this text outside a TOML file: text options take it as it is (quotes
// around the whole of it are taken off), all others read it as TOML would.
written read_text(const option& o, std::string_view text);

// The value as the option wants it, or the complaint (without key and place).
result<value> fit(const option& o, const written& w);

// "at least 0 and below 1"; "" where anything goes.
std::string describe_bounds(const bounds& b);

// TOML spelling. A double prints with the fewest digits that read back as the same bits.
std::string print_value(const value& v);
std::string print_quoted(std::string_view text);

}  // namespace troupe::config
