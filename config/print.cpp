#include "config/print.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/known_names.hpp"
#include "config/options.hpp"

namespace troupe::config {
namespace {

std::string type_of(const option& o) {
  switch (o.kind) {
    case kind::text:
      return "text";
    case kind::choice: {
      std::string text;
      for (const std::string_view c : o.choices)
        text += (text.empty() ? "" : ", ") + print_quoted(c);
      return text;
    }
    case kind::integer:
      return "whole number";
    case kind::number:
      return "number";
    case kind::boolean:
      return "true or false";
    case kind::table:
      return "table";
    case kind::tables:
      return "list of tables";
  }
  return "";
}

std::string default_of(const option& o) {
  if (o.standard.empty()) return o.required ? "required" : "";
  const bool quoted = o.kind == kind::text || o.kind == kind::choice;
  return quoted ? print_quoted(o.standard) : std::string(o.standard);
}

// "tokens, at least 1 and at most 16777216"
std::string unit_and_bounds(const option& o) {
  bounds b = o.bounds;
  // The largest numbers there are say nothing to a reader.
  if (b.most >= 2147483647) b.most = std::numeric_limits<double>::infinity();
  const std::string limits = describe_bounds(b);
  return std::string(o.unit) + (o.unit.empty() || limits.empty() ? "" : ", ") + limits;
}

std::string table_header(std::string_view section) {
  return section == "data.sources[]" ? "[[data.sources]]" : fmt::format("[{}]", section);
}

std::string_view bits_text(bits b) {
  switch (b) {
    case bits::no:
      return "never changes bits";
    case bits::yes:
      return "may change bits: compared on resume";
    case bits::through:
      return "may change bits: compared on resume through what follows from it";
  }
  return "";
}

std::string foreign_names_of(std::string_view name) {
  std::string text;
  for (const foreign_name& f : foreign_names()) {
    if (f.ours == name) text += fmt::format("{}{}", text.empty() ? "" : ", ", f.name);
  }
  return text;
}

std::string explain_option(const option& o) {
  std::string text = fmt::format("{}\n  {}\n  {}", o.name, o.sentence, type_of(o));
  if (const std::string limits = unit_and_bounds(o); !limits.empty())
    text += fmt::format(" ({})", limits);
  const std::string standard = default_of(o);
  text += standard == "required" || standard.empty()
              ? fmt::format("; {}", o.required ? standard : "no default")
              : fmt::format("; default {}", standard);
  text += fmt::format(
      "\n  {}; {}\n", bits_text(o.bits),
      o.scope == scope::run ? "the same for the whole run" : "each member may have its own");
  if (o.section() != "data.sources[]") {
    text +=
        fmt::format("  environment {}, command line --{}=...\n", environment_name(o.name), o.name);
  } else {
    text += fmt::format("  command line --data.sources[0].{}=...\n", o.key());
  }
  if (const std::string others = foreign_names_of(o.name); !others.empty()) {
    text += fmt::format("  elsewhere called {}\n", others);
  }
  return text;
}

std::string explain_section(const section& s) {
  std::string text = fmt::format("{}\n  {}\n", table_header(s.name), s.sentence);
  for (const option& o : options()) {
    if (o.section() == s.name) text += fmt::format("\n{}", explain_option(o));
  }
  return text;
}

std::string reference_table(const section& s) {
  std::string text = fmt::format("\n## {}\n\n{}\n\n", table_header(s.name), s.sentence);
  text += "| key | type | default | unit, bounds | bits | scope | meaning |\n";
  text += "|---|---|---|---|---|---|---|\n";
  for (const option& o : options()) {
    if (o.section() != s.name) continue;
    const std::string standard = default_of(o);
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} |\n", o.key(), type_of(o),
        standard.empty() || standard == "required" ? standard : fmt::format("`{}`", standard),
        unit_and_bounds(o), o.bits == bits::no ? "" : "x", o.scope == scope::run ? "run" : "member",
        o.sentence);
  }
  return text;
}

constexpr std::string_view introduction =
    R"(# Configuration

Printed from the option table; do not edit. After a change to the table:
`troupe config reference > docs/configuration.md`.

A configuration is a TOML file. Each value comes from the highest of: command line
(`--set section.key=value` or `--section.key=value`; a boolean key alone means true), environment
(`TROUPE_SECTION_KEY`), file, preset (`model.flavor`), default. `troupe config show FILE` prints what
results, as TOML that can be fed back; `troupe config check FILE` only checks;
`troupe config explain KEY` prints one row of this page.

An unknown, misplaced or duplicate key, and a value of the wrong kind, are errors (exit code 78) that
name file, line, key and the nearest known key. Numbers: `1` may stand where a number with a point
belongs; `1e3` may not stand where a whole number belongs; a number in quotes never may. Nothing is
rounded or cut to fit. Paths are relative to the working directory.

*bits*: a change may change the bits of the run, so it is compared on resume. *scope*: run = one value
for all members, member = each member's own affair. Keys without a default are derived as their
meaning says, or required.
)";

std::string reference_names() {
  std::string text =
      "\n## Not in this version\n\nKnown names that are refused until the code that obeys them is "
      "there:\n\n";
  std::string_view table;
  for (const std::string_view name : absent_names()) {
    const std::string_view own = name.substr(0, name.rfind('.'));
    const std::string_view key = name.substr(name.rfind('.') + 1);
    if (own != table) text += fmt::format("{}- {}: {}", table.empty() ? "" : "\n", own, key);
    if (own == table) text += fmt::format(", {}", key);
    table = own;
  }
  text += "\n\nNot supported, and what to do instead:\n\n";
  for (const unsupported_name& u : unsupported_names()) {
    text += fmt::format("- {}: {}\n", u.name, u.instead);
  }
  text +=
      "\n## Names elsewhere\n\nWhoever writes one of these is told ours.\n\n| elsewhere | here | "
      "note "
      "|\n|---|---|---|\n";
  for (const foreign_name& f : foreign_names()) {
    text += fmt::format("| {} | {} | {} |\n", f.name, f.ours, f.note);
  }
  return text;
}

}  // namespace

std::string show_toml(const settings& s, const std::map<std::string, std::string>& origins) {
  std::string text;
  std::string place;  // section and entry
  for (const setting& one : list_settings(s)) {
    const std::string here = one.key.substr(0, one.key.rfind('.'));
    if (here != place) {
      text += fmt::format("{}{}\n", text.empty() ? "" : "\n", table_header(one.option->section()));
    }
    place = here;
    const auto origin = origins.find(one.key);
    text += fmt::format("{} = {}{}\n", one.option->key(), print_value(one.value),
                        origin == origins.end() ? "" : fmt::format("  # {}", origin->second));
  }
  return text;
}

std::string show_json(const settings& s) {
  nlohmann::ordered_json root;
  for (const setting& one : list_settings(s)) {
    nlohmann::ordered_json* at = &root;
    if (one.option->section() == "data.sources[]") {
      at = &root["data"]["sources"][one.index];
    } else if (one.option->section() == "model.rope_scaling") {
      at = &root["model"]["rope_scaling"];
    } else {
      at = &root[std::string(one.option->section())];
    }
    auto& place = (*at)[std::string(one.option->key())];
    if (const auto* b = std::get_if<bool>(&one.value)) place = *b;
    if (const auto* i = std::get_if<std::int64_t>(&one.value)) place = *i;
    if (const auto* d = std::get_if<double>(&one.value)) place = *d;
    if (const auto* t = std::get_if<std::string>(&one.value)) place = *t;
  }
  return root.dump(2) + "\n";
}

std::optional<std::string> explain(std::string_view name) {
  if (const option* o = find_option(without_index(name))) {
    std::string text = explain_option(*o);
    if (o->kind == kind::table)
      text += fmt::format("\n{}", explain_section(*find_section(o->name)));
    if (o->kind == kind::tables)
      text += fmt::format("\n{}", explain_section(*find_section("data.sources[]")));
    return text;
  }
  if (const section* s = find_section(name)) return explain_section(*s);
  for (const foreign_name& f : foreign_names()) {
    if (f.name != name) continue;
    const option* ours = find_option(f.ours);
    return fmt::format("{}: {}\n{}{}", name, explain_unknown(name), ours ? "\n" : "",
                       ours ? explain_option(*ours) : "");
  }
  for (const std::string_view absent : absent_names()) {
    if (absent == name) return fmt::format("{}: {}\n", name, explain_unknown(name));
  }
  for (const unsupported_name& u : unsupported_names()) {
    if (u.name == name) return fmt::format("{}: {}\n", name, explain_unknown(name));
  }
  return std::nullopt;
}

std::string overview() {
  std::string text;
  for (const section& s : sections()) {
    text += fmt::format("{}{}  {}\n", text.empty() ? "" : "\n", table_header(s.name), s.sentence);
    for (const option& o : options()) {
      if (o.section() == s.name) text += fmt::format("  {:<28} {}\n", o.key(), o.sentence);
    }
  }
  return text;
}

std::string reference_page() {
  std::string text(introduction);
  for (const section& s : sections()) text += reference_table(s);
  return text + reference_names();
}

}  // namespace troupe::config
