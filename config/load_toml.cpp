#include "config/load_toml.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <optional>

#include "config/known_names.hpp"

namespace troupe::config {
namespace {

using lines = std::vector<std::string>;

lines split(std::string_view text) {
  lines all(1);
  for (const char c : text) {
    if (c == '\n') {
      all.emplace_back();
    } else {
      all.back() += c;
    }
  }
  return all;
}

std::string join(const lines& all, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += all[i] + '\n';
  return text;
}

std::string strip(std::string_view text, std::string_view unwanted) {
  const auto first = text.find_first_not_of(unwanted);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(unwanted) - first + 1));
}

bool is_header(const std::string& line) { return strip(line, " \t\r").starts_with('['); }

std::string header_name(const std::string& line) {
  return strip(std::string_view(line).substr(0, line.find('#')), " \t\r[]");
}

// The dotted key that the line at `number` (from 1) sets, as far as plain text tells.
std::string key_at(const lines& all, std::size_t number) {
  if (number == 0 || number > all.size()) return "";
  if (is_header(all[number - 1])) return header_name(all[number - 1]);
  const std::size_t equals = all[number - 1].find('=');
  if (equals == std::string::npos) return "";
  std::string key = strip(all[number - 1].substr(0, equals), " \t\"'");
  for (std::size_t i = number - 1; i-- > 0;) {
    if (is_header(all[i])) return header_name(all[i]) + "." + key;
  }
  return key;
}

// Where the lines before `number` set `key`: 0 if nowhere. `key` may pass through lists of tables,
// then their last entry is meant.
std::size_t earlier_line(const lines& all, std::size_t number, const std::string& key) {
  try {
    const toml::table root = toml::parse(join(all, number - 1));
    const toml::node* node = &root;
    std::size_t line = 0;
    for (std::size_t at = 0; at <= key.size();) {
      const std::size_t dot = std::min(key.find('.', at), key.size());
      if (const auto* list = node->as_array(); list && !list->empty()) node = &list->back();
      const auto* table = node->as_table();
      const auto found =
          table ? table->find(key.substr(at, dot - at)) : toml::table::const_iterator{};
      if (!table || found == table->end()) return 0;
      line = found->first.source().begin.line;
      node = &found->second;
      at = dot + 1;
    }
    return line;
  } catch (const toml::parse_error&) {
    return 0;
  }
}

class reader {
 public:
  reader(std::string_view text, std::string file, std::string fixed_origin)
      : lines_(split(text)), file_(std::move(file)), fixed_origin_(std::move(fixed_origin)) {}

  toml_content read() {
    const auto root = parse();
    content_.whole = root.has_value();
    if (root) walk(*root, "", 0);
    return std::move(content_);
  }

 private:
  // A key set twice is a syntax error in TOML; it is reported and taken out, so that the rest of
  // the file can be read and reported with it.
  std::optional<toml::table> parse() {
    lines remaining = lines_;
    for (bool twice_before = false;;) {
      try {
        return toml::parse(join(remaining, remaining.size()));
      } catch (const toml::parse_error& e) {
        const std::size_t line = e.source().begin.line;
        const std::string key = key_at(remaining, line);
        const bool twice = e.description().find("redefine") != std::string_view::npos;
        if (!twice) {
          // What follows a value of several lines that was taken out is no new mistake.
          if (!twice_before)
            complain(key, line, fmt::format("not valid TOML: {}", e.description()));
          return std::nullopt;
        }
        const std::size_t first = earlier_line(remaining, line, key);
        const std::string where = first ? fmt::format("; the first time in line {}", first) : "";
        const bool header = line == 0 || line > remaining.size() || is_header(remaining[line - 1]);
        complain(key, line,
                 header
                     ? fmt::format("duplicate table: [{}] stands twice{}; join the two", key, where)
                     : fmt::format("duplicate key: set twice{}; take one out", where));
        if (header || remaining[line - 1].empty()) return std::nullopt;
        remaining[line - 1].clear();
        twice_before = true;
      }
    }
  }

  std::string origin(std::size_t line) const {
    return fixed_origin_.empty() ? fmt::format("{}:{}", file_, line) : fixed_origin_;
  }

  void complain(const std::string& key, std::size_t line, const std::string& message) {
    content_.complaints.push_back(
        {key, fmt::format("{}: {}{}{}", origin(line), key, key.empty() ? "" : ": ", message),
         line});
  }

  void assign(const option& o, std::size_t index, std::string key, written what, std::size_t line) {
    content_.assignments.push_back(
        {&o, index, std::move(key), std::move(what), origin(line), line});
  }

  // `prefix` is "training." or "data.sources[2]." or "".
  void walk(const toml::table& table, const std::string& prefix, std::size_t index) {
    for (const auto& [key, node] : table) {
      const std::string name = prefix + std::string(key.str());
      const std::size_t line = key.source().begin.line;
      const bool plain = key.str().find('[') == std::string_view::npos;
      const option* o = plain ? find_option(without_index(name)) : nullptr;
      if (o) {
        visit(*o, name, index, node, line);
      } else if (const auto* inner = node.as_table(); inner && !inner->empty()) {
        walk(*inner, name + ".", index);
      } else if (find_section(name) && node.is_table()) {
        continue;  // an empty table sets nothing
      } else if (find_section(name)) {
        complain(name, line, fmt::format("is a table: write [{}] and its keys below", name));
      } else {
        complain(name, line, explain_unknown(name));
      }
    }
  }

  void visit(const option& o, const std::string& name, std::size_t index, const toml::node& node,
             std::size_t line) {
    if (o.kind == kind::table) {
      const auto* inner = node.as_table();
      if (!inner) return complain(name, line, fmt::format("is a table: write [{}]", name));
      assign(o, 0, name, {true, "a table"}, line);
      return walk(*inner, name + ".", 0);
    }
    if (o.kind == kind::tables) return visit_list(o, name, node, line);
    if (node.is_table() || node.is_array()) {
      return complain(
          name, line,
          fmt::format("takes one value, not {}", node.is_table() ? "a table" : "a list"));
    }
    assign(o, index, name, read(node), line);
  }

  void visit_list(const option& o, const std::string& name, const toml::node& node,
                  std::size_t line) {
    const auto* list = node.as_array();
    const bool tables = list && !list->empty() && list->is_homogeneous<toml::table>();
    if (!tables) {
      return complain(name, line,
                      fmt::format("is a list of tables: write [[{}]] for each entry, and "
                                  "path = \"...\" in it",
                                  name));
    }
    const auto size = static_cast<std::int64_t>(list->size());
    assign(o, 0, name, {size, fmt::format("{} tables", size)}, line);
    for (std::size_t i = 0; i < list->size(); ++i) {
      walk(*(*list)[i].as_table(), fmt::format("{}[{}].", name, i), i);
    }
  }

  written read(const toml::node& node) const {
    if (const auto* text = node.as_string()) return {text->get(), print_quoted(text->get())};
    const std::string as_spelled = spelling(node.source());
    if (const auto* whole = node.as_integer()) return {whole->get(), as_spelled};
    if (const auto* number = node.as_floating_point()) return {number->get(), as_spelled};
    if (const auto* truth = node.as_boolean()) return {truth->get(), as_spelled};
    return {std::monostate(), as_spelled};  // a date or a time
  }

  // The source text of a value that stands in one line. Columns count characters, not bytes.
  std::string spelling(const toml::source_region& region) const {
    if (region.begin.line == 0 || region.begin.line > lines_.size()) return "this";
    const std::string& line = lines_[region.begin.line - 1];
    std::string text;
    toml::source_index column = 0;
    for (const char c : line) {
      if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++column;
      if (column >= region.begin.column && column < region.end.column) text += c;
    }
    return strip(text, " \t\r,");
  }

  lines lines_;
  std::string file_;
  std::string fixed_origin_;
  toml_content content_;
};

}  // namespace

toml_content read_toml(std::string_view text, const std::string& file) {
  return reader(text, file, "").read();
}

toml_content read_inline_table(const option& o, std::string_view text, const std::string& origin) {
  if (text.find('\n') != std::string_view::npos) {
    return {
        {},
        {{std::string(o.name), fmt::format("{}: {}: must stand in one line", origin, o.name), 0}}};
  }
  return reader(fmt::format("{} = {}", o.name, text), "", origin).read();
}

bool is_toml_text(std::string_view text) {
  try {
    return !toml::parse(fmt::format("text = {}", print_quoted(text))).empty();
  } catch (const toml::parse_error&) {
    return false;
  }
}

}  // namespace troupe::config
