#include "config/known_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "config/base/nearest.hpp"
#include "config/options.hpp"

namespace troupe::config {
namespace {

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::string_view table_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? "" : name.substr(0, dot);
}

std::string fold(std::string_view name) {
  std::string folded;
  for (const char c : name) {
    folded += c == '-' ? '_' : (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return folded;
}

bool is_absent(std::string_view name) {
  const auto all = absent_names();
  return std::find(all.begin(), all.end(), name) != all.end();
}

const foreign_name* find_foreign(std::string_view name) {
  const auto all = foreign_names();
  const auto it = std::find_if(all.begin(), all.end(), [&](auto& f) { return f.name == name; });
  return it == all.end() ? nullptr : &*it;
}

std::string tell(const foreign_name& f) {
  return fmt::format("unknown key; it is {} here{}{}{}", f.ours,
                     is_absent(f.ours) ? ", which is not in this version" : "",
                     f.note.empty() ? "" : ": ", f.note);
}

// A right key in a table whose name is mistyped.
std::optional<std::string> in_nearest_table(std::string_view name) {
  std::vector<std::string> tables;
  for (const section& s : sections()) tables.emplace_back(s.name);
  const auto table = nearest(table_of(name), tables);
  if (!table) return std::nullopt;
  const std::string whole = fmt::format("{}.{}", *table, last_part(name));
  if (whole == name || !find_option(whole)) return std::nullopt;
  return fmt::format("unknown table [{}]; the nearest is {}", table_of(name), whole);
}

// A right key in the wrong table.
std::optional<std::string> misplaced(std::string_view name) {
  const std::string_view key = last_part(name);
  std::string places;
  bool here = false;
  const auto add = [&](std::string_view known, bool present) {
    if (last_part(known) != key) return;
    places += fmt::format("{}{}", places.empty() ? "" : " or ", known);
    here |= present;
  };
  for (const option& o : options()) add(o.name, true);
  for (const std::string_view absent : absent_names()) add(absent, false);
  if (places.empty()) return std::nullopt;
  return fmt::format("misplaced key; its place is {}{}", places,
                     here ? "" : ", which is not in this version");
}

std::optional<std::string> nearest_in_table(std::string_view name) {
  std::vector<std::string> keys;
  for (const option& o : options()) {
    if (table_of(o.name) == table_of(name)) keys.emplace_back(last_part(o.name));
  }
  for (const std::string_view absent : absent_names()) {
    if (table_of(absent) == table_of(name)) keys.emplace_back(last_part(absent));
  }
  const auto key = nearest(last_part(name), keys);
  if (!key) return std::nullopt;
  return table_of(name).empty() ? *key : fmt::format("{}.{}", table_of(name), *key);
}

std::optional<std::string> nearest_anywhere(std::string_view name) {
  std::vector<std::string> names;
  for (const option& o : options()) names.emplace_back(o.name);
  for (const std::string_view absent : absent_names()) names.emplace_back(absent);
  // In a known table the table's own name would make everything in it look near.
  const bool known_table = find_section(table_of(name)) != nullptr;
  if (const auto whole = nearest(name, names); whole && !known_table) return whole;
  std::vector<std::string> keys;
  for (const std::string& known : names) keys.emplace_back(last_part(known));
  const auto key = nearest(last_part(name), keys);
  if (!key) return std::nullopt;
  return names[static_cast<std::size_t>(std::find(keys.begin(), keys.end(), *key) - keys.begin())];
}

// The known names that it could be, when none is near.
std::string choices(std::string_view table) {
  std::string text;
  for (const option& o : options()) {
    if (table_of(o.name) == table) text += fmt::format(" {}", o.key());
  }
  if (!text.empty()) return fmt::format("[{}] has{}", table, text);
  for (const section& s : sections()) {
    if (s.name.find('.') == std::string_view::npos) text += fmt::format(" {}", s.name);
  }
  return fmt::format("the tables are{}", text);
}

}  // namespace

std::string without_index(std::string_view name) {
  std::string plain;
  bool inside = false;
  for (const char c : name) {
    if (c == ']') inside = false;
    if (!inside) plain += c;
    if (c == '[') inside = true;
  }
  return plain;
}

std::string explain_unknown(std::string_view numbered) {
  const std::string name = without_index(numbered);
  const std::string folded = fold(name);
  if (is_absent(name)) return "known key, but not in this version; take it out";
  for (const unsupported_name& u : unsupported_names()) {
    if (u.name == name || last_part(u.name) == last_part(name)) {
      return fmt::format("not supported; {}", u.instead);
    }
  }
  if (const auto* foreign = find_foreign(folded)) return tell(*foreign);
  if (auto renamed = in_nearest_table(name)) return *renamed;
  if (auto elsewhere = misplaced(name)) return *elsewhere;
  if (const auto* foreign = find_foreign(last_part(folded))) return tell(*foreign);
  auto near = nearest_in_table(name);
  if (!near) near = nearest_anywhere(name);
  if (!near) return fmt::format("unknown key, and none is near it; {}", choices(table_of(name)));
  return fmt::format("unknown key; the nearest is {}{}", *near,
                     is_absent(*near) ? ", which is not in this version" : "");
}

}  // namespace troupe::config
