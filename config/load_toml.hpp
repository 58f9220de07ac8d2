// TOML text to a flat list of what it sets, each with its line. Knows the option table only as far
// as it must to tell a table from a value; whether a value fits is decided by the caller, alike for
// all sources. The only home of toml++ in this folder.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "config/options.hpp"

namespace troupe::config {

struct assignment {
  const config::option* option;
  std::size_t index;  // entry of [[data.sources]]
  std::string key;    // "data.sources[0].path"
  written what;
  std::string origin;  // "run.toml:12"
  std::size_t line;
};

struct complaint {
  std::string key, text;  // `text` is the whole line: origin, key, message
  std::size_t line;
};

struct toml_content {
  std::vector<assignment> assignments;  // a table stands before its members
  std::vector<complaint> complaints;
  bool whole = true;  // false: not valid TOML, what it sets is not known
};

toml_content read_toml(std::string_view text, const std::string& file);

// The same for a table option given in one line, as in --set 'data.sources=[{path = "x"}]'.
toml_content read_inline_table(const option& o, std::string_view text, const std::string& origin);

// Can this text stand in a TOML file? Not if it is no UTF-8.
bool is_toml_text(std::string_view text);

}  // namespace troupe::config
