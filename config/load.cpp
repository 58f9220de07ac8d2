#include "config/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "config/base/nearest.hpp"
#include "config/check.hpp"
#include "config/known_names.hpp"
#include "config/load_toml.hpp"
#include "config/options.hpp"
#include "config/presets.hpp"

namespace troupe::config {
namespace {

class loader {
 public:
  explicit loader(const sources_of_settings& from) : from_(from) {}

  result<loaded> load() {
    settings_ = default_settings();
    std::vector<assignment> written_ones;
    if (auto trouble = read_file(written_ones); !trouble) return trouble.failure();
    for (const std::string& variable : from_.environment) read_variable(variable, written_ones);
    for (const std::string& override_text : from_.overrides) {
      read_override(override_text, written_ones);
    }
    for (const assignment& a : preset_of(written_ones)) apply(a);
    for (const assignment& a : written_ones) apply(a);
    name_after_file();
    add_missing();
    if (complaints_.empty()) return loaded{std::move(settings_), std::move(origins_)};
    std::string text;
    for (const complaint& c : complaints_) text += (text.empty() ? "" : "\n") + c.text;
    return error{exit_code::bad_config, text};
  }

 private:
  status read_file(std::vector<assignment>& all) {
    if (from_.file.empty() && !from_.text) return done{};
    std::string text = from_.text.value_or("");
    if (!from_.text) {
      std::ifstream stream(from_.file, std::ios::binary);
      std::ostringstream content;
      const bool folder = std::filesystem::is_directory(from_.file);
      if (!stream || folder || (stream.peek() != EOF && !(content << stream.rdbuf()))) {
        return error{exit_code::bad_config, fmt::format("{}: {}", from_.file,
                                                        folder ? "is a folder, not a file"
                                                               : "cannot be read; does it exist?")};
      }
      text = content.str();
    }
    toml_content content = read_toml(text, from_.file);
    whole_ = content.whole;
    take(std::move(content), all);
    // Values are fitted with the other sources; a complaint about one belongs between the others.
    last_line_ = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
    return done{};
  }

  void take(toml_content content, std::vector<assignment>& all) {
    for (complaint& c : content.complaints) complain(std::move(c));
    for (assignment& a : content.assignments) all.push_back(std::move(a));
  }

  // The complaints stay in the order of the file's lines, other sources behind them.
  void complain(complaint c) {
    keys_with_complaints_.insert(c.key);
    const auto after =
        std::upper_bound(complaints_.begin(), complaints_.end(), c,
                         [](const complaint& a, const complaint& b) { return a.line < b.line; });
    complaints_.insert(after, std::move(c));
  }
  void complain(const std::string& origin, const std::string& key, const std::string& message,
                std::size_t line) {
    complain({key, fmt::format("{}: {}: {}", origin, key, message), line});
  }

  void read_variable(const std::string& variable, std::vector<assignment>& all) {
    if (!variable.starts_with("TROUPE_")) return;
    const std::size_t equals = std::min(variable.find('='), variable.size());
    const std::string name = variable.substr(0, equals);
    const std::string text = equals < variable.size() ? variable.substr(equals + 1) : "";
    std::vector<std::string> known;
    for (const option& o : options()) {
      if (o.section() == "data.sources[]") continue;  // which entry? only the whole list has a name
      known.push_back(environment_name(o.name));
      if (known.back() == name) return read_value(o, 0, std::string(o.name), text, name, all);
    }
    for (const std::string_view absent : absent_names()) {
      if (environment_name(absent) != name) continue;
      return complain("environment", name, explain_unknown(absent), behind_file());
    }
    const auto near = nearest(name, known);
    complain("environment", name,
             fmt::format("names no key{}", near ? fmt::format("; the nearest is {}", *near) : ""),
             behind_file());
  }

  void read_override(const std::string& override_text, std::vector<assignment>& all) {
    const std::size_t equals = std::min(override_text.find('='), override_text.size());
    const std::string key = override_text.substr(0, equals);
    const option* o = find_option(without_index(key));
    const bool numbered = key.find('[') != std::string::npos;
    const bool in_list = o && o->section() == "data.sources[]";
    if (!o || (numbered && !in_list)) {
      return complain("command line", key, explain_unknown(key), behind_file());
    }
    std::size_t index = 0;
    if (in_list && !parse_index(key, index)) {
      return complain("command line", key,
                      fmt::format("say which entry, as in data.sources[0].{}", o->key()),
                      behind_file());
    }
    if (equals == override_text.size() && o->kind != kind::boolean) {
      return complain("command line", key, "needs a value: key=value", behind_file());
    }
    const std::string text =
        equals == override_text.size() ? "true" : override_text.substr(equals + 1);
    read_value(*o, index, key, text, "command line", all);
  }

  static bool parse_index(const std::string& key, std::size_t& index) {
    const std::size_t open = key.find('['), close = key.find(']');
    if (open == std::string::npos || close == std::string::npos) return false;
    const std::string digits = key.substr(open + 1, close - open - 1);
    const bool small = !digits.empty() && digits.size() <= 4 &&
                       digits.find_first_not_of("0123456789") == std::string::npos;
    if (small) index = static_cast<std::size_t>(std::stoul(digits));
    return small;
  }

  void read_value(const option& o, std::size_t index, const std::string& key,
                  const std::string& text, const std::string& origin,
                  std::vector<assignment>& all) {
    // What the shell hands over may be no text, and what is shown must be possible to read back.
    if (!is_toml_text(text)) return complain(origin, key, "is not valid UTF-8", behind_file());
    if (o.kind == kind::table || o.kind == kind::tables) {
      toml_content content = read_inline_table(o, text, origin);
      for (complaint& c : content.complaints) c.line = behind_file();
      for (assignment& a : content.assignments) a.line = behind_file();
      return take(std::move(content), all);
    }
    all.push_back({&o, index, key, read_text(o, text), origin, behind_file()});
  }

  std::vector<assignment> preset_of(const std::vector<assignment>& all) {
    const auto flavor = std::find_if(all.rbegin(), all.rend(), [](const assignment& a) {
      return a.option->name == "model.flavor";
    });
    const auto* name =
        flavor == all.rend() ? nullptr : std::get_if<std::string>(&flavor->what.value);
    if (!name || name->empty()) return {};
    std::vector<std::string> names;
    for (const preset& p : presets()) {
      names.emplace_back(p.name);
      if (p.name != *name) continue;
      toml_content content = read_toml(p.toml, "preset");
      ensure(content.complaints.empty(), "a preset of ours does not load: " + *name);
      for (assignment& a : content.assignments) a.origin = "preset " + *name;
      return std::move(content.assignments);
    }
    std::string all_names;
    for (const std::string& one : names) all_names += (all_names.empty() ? "" : ", ") + one;
    const auto near = nearest(*name, names);
    complain(flavor->origin, "model.flavor",
             fmt::format("there is no preset {}; there are {}{}", print_quoted(*name), all_names,
                         near ? "; did you mean " + *near + "?" : ""),
             flavor->line);
    return {};
  }

  void apply(const assignment& a) {
    const bool table = a.option->kind == kind::table || a.option->kind == kind::tables;
    if (table) {  // replaces the whole of what lower layers gave
      a.option->set(settings_, 0, a.what.value);
      std::erase_if(origins_, [&](const auto& one) {
        return one.first.starts_with(std::string(a.option->name) + ".") ||
               one.first.starts_with(std::string(a.option->name) + "[");
      });
      return;
    }
    const auto fitted = fit(*a.option, a.what);
    if (!fitted) return complain(a.origin, a.key, fitted.failure().message, a.line);
    if (a.option->section() == "data.sources[]" && a.index >= settings_.data.sources.size()) {
      return complain(a.origin, a.key,
                      fmt::format("there are only {} sources", settings_.data.sources.size()),
                      a.line);
    }
    a.option->set(settings_, a.index, *fitted);
    origins_[a.key] = a.origin;
  }

  void name_after_file() {
    if (!settings_.job.name.empty() || from_.file.empty()) return;
    settings_.job.name = std::filesystem::path(from_.file).stem().string();
    for (char& c : settings_.job.name) {
      const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
      if (!fine) c = '_';
    }
    origins_["job.name"] = "the file's name";
  }

  void add_missing() {
    if (!whole_) return;  // who knows what the file would have set
    for (const problem& p : row_problems(settings_)) {
      if (keys_with_complaints_.contains(p.key)) continue;
      complain(from_.file.empty() ? "configuration" : from_.file, p.key, p.message, behind_file());
    }
  }

  std::size_t behind_file() const { return last_line_ + 1; }

  const sources_of_settings& from_;
  config::settings settings_;
  std::map<std::string, std::string> origins_;
  std::vector<complaint> complaints_;
  std::set<std::string> keys_with_complaints_;
  std::size_t last_line_ = 0;
  bool whole_ = true;
};

}  // namespace

result<loaded> load_as_written(const sources_of_settings& from) { return loader(from).load(); }

result<loaded> load(const sources_of_settings& from) {
  auto read = load_as_written(from);
  if (!read) return read;
  read->settings = derive(std::move(read->settings));
  std::string text;
  for (const problem& p : cross_problems(read->settings)) {
    const auto origin = read->origins.find(p.key);
    const std::string where = origin != read->origins.end() ? origin->second
                              : from.file.empty()           ? "default"
                                                            : from.file + " (default)";
    text += fmt::format("{}{}: {}: {}", text.empty() ? "" : "\n", where, p.key, p.message);
  }
  if (!text.empty()) return error{exit_code::bad_config, text};
  return read;
}

}  // namespace troupe::config
