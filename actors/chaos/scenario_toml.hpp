// TOML text as a plain tree in which every value knows its line, so that everything after it reads
// as plain C++ and every complaint can name file and line. The only home of toml++ in this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/base/error.hpp"

namespace troupe::actors::chaos {

struct toml_node {
  using list = std::vector<toml_node>;
  using table = std::map<std::string, toml_node>;
  struct other {};  // a date or a time
  std::variant<std::int64_t, double, bool, std::string, list, table, other> value;
  std::size_t line = 0;

  const table* as_table() const { return std::get_if<table>(&value); }
  const list* as_list() const { return std::get_if<list>(&value); }
  const std::string* as_text() const { return std::get_if<std::string>(&value); }
  // "a table", "a list", "text", ...: for messages.
  std::string_view sort() const;
};

// The root is a table. An error (78) names file and line.
result<toml_node> read_toml_tree(std::string_view text, const std::string& file);

}  // namespace troupe::actors::chaos
