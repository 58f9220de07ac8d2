// Takes a table of a scenario file apart, strictly: a wrong type or range, and at the end every key
// that nobody asked for, becomes a complaint with file, line, key and the nearest known name. All
// complaints of a file are gathered, because people repair a file faster than they start again.
//
// A reading function returns nothing where the key is missing or wrong; the complaint says which.
#pragma once

#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/chaos/scenario.hpp"
#include "actors/chaos/scenario_toml.hpp"

namespace troupe::actors::chaos {

class complaints {
 public:
  explicit complaints(std::string file) : file_(std::move(file)) {}
  void add(std::size_t line, const std::string& key, const std::string& what);
  bool empty() const { return all_.empty(); }
  // By line. Requires that there are some.
  error as_error() const;

 private:
  struct one {
    std::size_t line;
    std::string text;
  };
  std::string file_;
  std::vector<one> all_;
};

class scenario_fields {
 public:
  // `path`: "fault[2]." or "". Node and complaints must outlive the reader.
  scenario_fields(const toml_node& table, std::string path, complaints& to);

  bool has(const std::string& name) const { return table_->contains(name); }
  std::size_t line() const { return line_; }
  const toml_node* any(const std::string& name);  // nullptr: missing

  std::optional<std::string> text(const std::string& name);
  std::optional<std::uint64_t> whole(const std::string& name, std::uint64_t least = 0,
                                     std::uint64_t most = std::numeric_limits<std::int64_t>::max());
  std::optional<double> number(const std::string& name, double least, double most);
  std::optional<bool> boolean(const std::string& name);
  std::optional<duration> time(const std::string& name);
  std::optional<extent> time_or_steps(const std::string& name);
  std::optional<std::vector<std::string>> texts(const std::string& name);
  std::optional<std::string> choice(const std::string& name, const std::vector<std::string>& from);
  const toml_node* table(const std::string& name);  // nullptr: missing or no table

  void complain(const std::string& name, const std::string& what);
  // Keys that nobody asked for. Call it last.
  void finish();

 private:
  const toml_node::table* table_;
  std::size_t line_;
  std::string path_;
  complaints* to_;
  std::set<std::string> asked_;
};

// "90s", "400ms", "1h", "1.5s", "1h30m": numbers with units, added up. Nothing: it is no duration.
std::optional<duration> parse_duration(std::string_view text);

// " (did you mean X?)", or all of the few, or "".
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace troupe::actors::chaos
