#include "actors/chaos/scenario_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "config/base/nearest.hpp"

namespace troupe::actors::chaos {

void complaints::add(std::size_t line, const std::string& key, const std::string& what) {
  all_.push_back(
      {line, fmt::format("{}:{}: {}{}{}", file_, line, key, key.empty() ? "" : ": ", what)});
}

error complaints::as_error() const {
  ensure(!all_.empty(), "an error was made of no complaint");
  std::vector<one> sorted = all_;
  std::ranges::stable_sort(sorted, {}, &one::line);
  std::string text;
  for (const one& c : sorted) text += (text.empty() ? "" : "\n") + c.text;
  return {exit_code::bad_config, text};
}

scenario_fields::scenario_fields(const toml_node& table, std::string path, complaints& to)
    : table_(table.as_table()), line_(table.line), path_(std::move(path)), to_(&to) {
  ensure(table_ != nullptr, "fields were asked of something that is no table");
}

const toml_node* scenario_fields::any(const std::string& name) {
  asked_.insert(name);
  const auto found = table_->find(name);
  return found == table_->end() ? nullptr : &found->second;
}

void scenario_fields::complain(const std::string& name, const std::string& what) {
  const auto found = table_->find(name);
  to_->add(found == table_->end() ? line_ : found->second.line, path_ + name, what);
}

std::optional<std::string> scenario_fields::text(const std::string& name) {
  const toml_node* node = any(name);
  if (node == nullptr) return std::nullopt;
  if (const std::string* found = node->as_text()) return *found;
  complain(name, fmt::format("takes text in quotes, not {}", node->sort()));
  return std::nullopt;
}

std::optional<std::uint64_t> scenario_fields::whole(const std::string& name, std::uint64_t least,
                                                    std::uint64_t most) {
  const toml_node* node = any(name);
  if (node == nullptr) return std::nullopt;
  const std::int64_t* found = std::get_if<std::int64_t>(&node->value);
  if (found == nullptr) {
    complain(name, fmt::format("takes a whole number, not {}", node->sort()));
    return std::nullopt;
  }
  if (*found < 0 || static_cast<std::uint64_t>(*found) < least ||
      static_cast<std::uint64_t>(*found) > most) {
    complain(name, most >= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
                       ? fmt::format("is {}, but must be at least {}", *found, least)
                       : fmt::format("is {}, but must be {} to {}", *found, least, most));
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(*found);
}

std::optional<double> scenario_fields::number(const std::string& name, double least, double most) {
  const toml_node* node = any(name);
  if (node == nullptr) return std::nullopt;
  double found = 0;
  if (const auto* whole = std::get_if<std::int64_t>(&node->value)) {
    found = static_cast<double>(*whole);
  } else if (const auto* real = std::get_if<double>(&node->value)) {
    found = *real;
  } else {
    complain(name, fmt::format("takes a number, not {}", node->sort()));
    return std::nullopt;
  }
  if (found >= least && found <= most) return found;
  complain(name, fmt::format("is {}, but must be {} to {}", found, least, most));
  return std::nullopt;
}

std::optional<bool> scenario_fields::boolean(const std::string& name) {
  const toml_node* node = any(name);
  if (node == nullptr) return std::nullopt;
  if (const bool* found = std::get_if<bool>(&node->value)) return *found;
  complain(name, fmt::format("takes true or false, not {}", node->sort()));
  return std::nullopt;
}

std::optional<duration> scenario_fields::time(const std::string& name) {
  const toml_node* node = any(name);
  if (node == nullptr) return std::nullopt;
  const std::string* text = node->as_text();
  const auto found = text != nullptr ? parse_duration(*text) : std::nullopt;
  if (!found) complain(name, "takes a duration in quotes, as in \"90s\", \"400ms\" or \"1h\"");
  return found;
}

std::optional<extent> scenario_fields::time_or_steps(const std::string& name) {
  const toml_node* node = any(name);
  if (node == nullptr) return std::nullopt;
  if (const auto* steps = std::get_if<std::int64_t>(&node->value); steps && *steps >= 0) {
    return extent(step_count{static_cast<std::uint64_t>(*steps)});
  }
  const std::string* text = node->as_text();
  if (const auto found = text != nullptr ? parse_duration(*text) : std::nullopt) {
    return extent(*found);
  }
  complain(name, "takes a duration in quotes, as in \"400ms\", or a number of steps");
  return std::nullopt;
}

std::optional<std::vector<std::string>> scenario_fields::texts(const std::string& name) {
  const toml_node* node = any(name);
  if (node == nullptr) return std::nullopt;
  std::vector<std::string> all;
  const bool list = node->as_list() != nullptr;
  if (list) {
    for (const toml_node& one : *node->as_list()) {
      if (const std::string* text = one.as_text()) all.push_back(*text);
    }
  }
  if (!list || all.size() != node->as_list()->size()) {
    complain(name, "takes a list of texts, as in [\"a\", \"b\"]");
    return std::nullopt;
  }
  return all;
}

std::optional<std::string> scenario_fields::choice(const std::string& name,
                                                   const std::vector<std::string>& from) {
  const auto found = text(name);
  if (!found || std::ranges::find(from, *found) != from.end()) return found;
  complain(name, fmt::format("\"{}\" is none of the choices{}", *found, suggestion(*found, from)));
  return std::nullopt;
}

const toml_node* scenario_fields::table(const std::string& name) {
  const toml_node* node = any(name);
  if (node == nullptr || node->as_table() != nullptr) return node;
  complain(name, fmt::format("is a table, not {}", node->sort()));
  return nullptr;
}

void scenario_fields::finish() {
  const std::vector<std::string> known(asked_.begin(), asked_.end());
  for (const auto& [name, node] : *table_) {
    if (asked_.contains(name)) continue;
    complain(name, fmt::format("there is no such key{}", suggestion(name, known)));
  }
}

std::optional<duration> parse_duration(std::string_view text) {
  struct unit {
    std::string_view name;
    double nanoseconds;
  };
  constexpr std::array units = {unit{"ns", 1},  unit{"us", 1e3}, unit{"ms", 1e6},
                                unit{"s", 1e9}, unit{"m", 60e9}, unit{"h", 3600e9}};
  if (text.empty()) return std::nullopt;
  double sum = 0;
  while (!text.empty()) {
    double number = 0;
    const auto [end, trouble] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (trouble != std::errc{} || !(number >= 0 && number < 1e18)) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const std::size_t letters = std::min(text.find_first_of("0123456789."), text.size());
    const auto found = std::ranges::find(units, text.substr(0, letters), &unit::name);
    if (found == units.end()) return std::nullopt;
    sum += number * found->nanoseconds;
    text.remove_prefix(letters);
  }
  if (sum > 9e18) return std::nullopt;
  return duration(static_cast<std::int64_t>(sum + 0.5));
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  if (const auto near = nearest(word, known)) return fmt::format("; did you mean {}?", *near);
  if (known.empty() || known.size() > 20) return "";
  std::string all;
  for (const std::string& one : known) all += (all.empty() ? "" : ", ") + one;
  return fmt::format("; there are {}", all);
}

}  // namespace troupe::actors::chaos
