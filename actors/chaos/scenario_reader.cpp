#include "actors/chaos/scenario_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "actors/chaos/fault_reader.hpp"
#include "actors/chaos/metrics.hpp"
#include "actors/chaos/scenario_fields.hpp"
#include "actors/chaos/scenario_toml.hpp"
#include "config/base/json.hpp"

namespace troupe::actors::chaos {
namespace {

constexpr std::uint64_t most_members = 4096, scenario_limit = 1 << 20;

std::vector<member_id> read_members(const std::vector<std::string>& names, const std::string& key,
                                    scenario_fields& from) {
  std::vector<member_id> all;
  for (const std::string& name : names) {
    const result<selector> s = parse_selector(name);
    if (s && s->what == selector::kind::member) {
      all.push_back(s->members.front());
    } else {
      from.complain(key, fmt::format("\"{}\" is no member; members are m0, m1, ...", name));
    }
  }
  return all;
}

class reader {
 public:
  reader(const toml_node& root, const std::string& file)
      : complaints_(file), root_(root, "", complaints_) {
    s_.file = file;
  }

  result<scenario> read() {
    head();
    if (const toml_node* t = root_.table("cluster")) cluster(*t);
    if (const toml_node* t = root_.table("run")) {
      run(*t);
    } else if (!root_.has("run")) {
      root_.complain("run", "is missing: [run] says which config the scenario trains");
    }
    faults();
    if (const toml_node* t = root_.table("random")) s_.random = read_random(*t, complaints_);
    if (const toml_node* t = root_.table("limits")) limits(*t);
    if (const toml_node* t = root_.table("quiet")) quiet(*t);
    if (const toml_node* t = root_.table("invariants")) invariants(*t);
    if (const toml_node* t = root_.table("expect")) expect(*t);
    root_.finish();
    if (!complaints_.empty()) return complaints_.as_error();
    return std::move(s_);
  }

 private:
  void head() {
    if (const auto schema = root_.whole("schema"); schema && *schema != 1) {
      root_.complain("schema", fmt::format("is {}; this version reads 1", *schema));
    } else if (!root_.has("schema")) {
      root_.complain("schema", "is missing: write schema = 1");
    }
    if (const auto name = root_.text("name")) s_.name = *name;
    const bool good = !s_.name.empty() && std::ranges::all_of(s_.name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_';
    });
    if (!good) root_.complain("name", "takes letters, digits, '-' and '_', at least one");
    s_.about = root_.text("about").value_or("");
    s_.seed = root_.whole("seed").value_or(1);
    s_.repeat = root_.whole("repeat", 1, 1'000'000).value_or(1);
    const std::vector<std::string> all = {"sim", "process", "cluster"};
    const auto modes = root_.texts("mode").value_or(all);
    for (const std::string& mode : modes) {
      const auto found = std::ranges::find(all, mode);
      if (found == all.end()) {
        root_.complain("mode",
                       fmt::format("there is no mode \"{}\"{}", mode, suggestion(mode, all)));
      } else {
        s_.modes.insert(static_cast<run_mode>(found - all.begin()));
      }
    }
    if (modes.empty()) root_.complain("mode", "names no mode");
  }

  void cluster(const toml_node& table) {
    scenario_fields from(table, "cluster.", complaints_);
    s_.members = static_cast<std::uint32_t>(from.whole("members", 1, most_members).value_or(1));
    s_.spares = static_cast<std::uint32_t>(from.whole("spares", 0, most_members).value_or(0));
    s_.classes = from.texts("classes").value_or(s_.classes);
    if (const toml_node* domains = from.any("domains")) {
      const auto* list = domains->as_list();
      if (list == nullptr) from.complain("domains", "takes a list of lists of members");
      for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
        std::vector<std::string> names;
        if (const auto* inner = (*list)[i].as_list()) {
          for (const toml_node& name : *inner) {
            names.push_back(name.as_text() != nullptr ? *name.as_text() : "");
          }
        } else {
          from.complain("domains", "takes a list of lists, as in [[\"m0\"], [\"m1\"]]");
        }
        s_.domains.push_back(read_members(names, "domains", from));
      }
    }
    from.finish();
  }

  // { "training.steps" = 60 } and { training.steps = 60 } mean the same.
  void sets(const toml_node& table, const std::string& prefix, scenario_fields& from) {
    for (const auto& [key, node] : *table.as_table()) {
      const std::string name = prefix + key;
      if (node.as_table() != nullptr) {
        sets(node, name + ".", from);
      } else if (const auto* text = node.as_text()) {
        s_.sets[name] = *text;
      } else if (const auto* whole = std::get_if<std::int64_t>(&node.value)) {
        s_.sets[name] = fmt::format("{}", *whole);
      } else if (const auto* number = std::get_if<double>(&node.value)) {
        s_.sets[name] = fmt::format("{}", *number);
      } else if (const auto* truth = std::get_if<bool>(&node.value)) {
        s_.sets[name] = *truth ? "true" : "false";
      } else {
        from.complain("set", fmt::format("{} takes one value, not {}", name, node.sort()));
      }
    }
  }

  void run(const toml_node& table) {
    scenario_fields from(table, "run.", complaints_);
    if (const auto config = from.text("config")) {
      s_.config = *config;
    } else if (!from.has("config")) {
      from.complain("config", "is missing: the path of a config, relative to the scenario");
    }
    if (const toml_node* set = from.table("set")) sets(*set, "", from);
    s_.reference_given = from.has("reference");
    s_.reference = from.text("reference").value_or("auto");
    const bool hash = s_.reference.size() == 32 &&
                      s_.reference.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (s_.reference != "auto" && s_.reference != "none" && !hash) {
      from.complain("reference", "takes auto, none, or a weights hash of 32 hex digits");
    }
    if (const auto guard = from.time("guard")) {
      s_.guard = *guard;
      if (guard->count() == 0) from.complain("guard", "must be more than 0");
    }
    from.finish();
  }

  void faults() {
    const toml_node* node = root_.any("fault");
    if (node == nullptr) return;
    const auto* list = node->as_list();
    if (list == nullptr) return root_.complain("fault", "is a list of tables: write [[fault]]");
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string path = fmt::format("fault[{}]", i);
      if ((*list)[i].as_table() == nullptr) {
        root_.complain("fault", path + " is no table: write [[fault]]");
        continue;
      }
      if (auto one = read_fault((*list)[i], path + ".", complaints_)) {
        s_.faults.push_back(std::move(*one));
      }
    }
  }

  void limits(const toml_node& table) {
    scenario_fields from(table, "limits.", complaints_);
    s_.inside_promise = from.boolean("inside_promise").value_or(true);
    if (const toml_node* lose = from.any("may_lose")) {
      const auto* list = lose->as_list();
      const std::string* text = lose->as_text();
      bool good = list != nullptr || (text != nullptr && *text == "none");
      for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
        const auto* block = std::get_if<std::int64_t>(&(*list)[i].value);
        good = good && block != nullptr && *block >= 0 && *block < (std::int64_t{1} << 32);
        if (good) s_.may_lose.insert(static_cast<std::uint32_t>(*block));
      }
      if (!good) from.complain("may_lose", "takes \"none\" or a list of block numbers");
    }
    from.finish();
  }

  void quiet(const toml_node& table) {
    scenario_fields from(table, "quiet.", complaints_);
    quiet_phase q;
    q.at_step = from.whole("at_step", 1);
    q.at_time = from.time("at_time");
    if (from.has("at_step") == from.has("at_time")) {
      from.complain("at_step", "takes either at_step or at_time, one of them");
    }
    if (const toml_node* core = from.any("core"); core != nullptr) {
      if (core->as_text() == nullptr || *core->as_text() != "all") {
        q.core =
            read_members(from.texts("core").value_or(std::vector<std::string>()), "core", from);
      }
    }
    q.settle = from.time("settle");
    q.progress = from.whole("progress").value_or(0);
    from.finish();
    s_.quiet = std::move(q);
  }

  void invariants(const toml_node& table) {
    scenario_fields from(table, "invariants.", complaints_);
    s_.equal_bits = from.choice("bits", {"equal", "none"}).value_or("equal") == "equal";
    s_.ledger = from.choice("ledger", {"equal", "complete", "none"}).value_or("equal");
    for (const std::string& name : invariant_names()) {
      if (const auto wanted = from.boolean(name)) s_.invariants[name] = *wanted;
    }
    from.finish();
  }

  // One value of a limit in the metric's unit; nothing: it is none.
  static std::optional<double> limit_value(const toml_node& node, unit in) {
    if (in == unit::boolean) {
      const bool* truth = std::get_if<bool>(&node.value);
      return truth == nullptr ? std::nullopt : std::optional(*truth ? 1.0 : 0.0);
    }
    if (const std::string* text = node.as_text(); text != nullptr && in == unit::seconds) {
      const auto d = parse_duration(*text);
      if (!d) return std::nullopt;
      return std::chrono::duration<double>(*d).count();
    }
    if (in == unit::seconds) return std::nullopt;
    if (const auto* whole = std::get_if<std::int64_t>(&node.value)) {
      return static_cast<double>(*whole);
    }
    const auto* number = std::get_if<double>(&node.value);
    return number != nullptr && in == unit::ratio ? std::optional(*number) : std::nullopt;
  }

  void expect(const toml_node& table) {
    scenario_fields from(table, "expect.", complaints_);
    for (const metric_row& row : metric_table()) {
      const std::string name(row.name);
      const toml_node* node = from.any(name);
      if (node == nullptr) continue;
      const auto* list = node->as_list();
      std::vector<std::optional<double>> values;
      if (list == nullptr) {
        values.push_back(limit_value(*node, row.in));
      } else {
        for (const toml_node& one : *list) values.push_back(limit_value(one, row.in));
      }
      const bool whole = std::ranges::all_of(values, [](const auto& v) { return v.has_value(); });
      const bool right_number = row.in == unit::boolean ? list == nullptr
                                : list == nullptr       ? row.in != unit::ratio
                                                        : values.size() == 2;
      if (!whole || !right_number) {
        constexpr std::array shapes = {
            "takes a duration, the most that is allowed, or two as a range: \"1s\" or [\"0s\", "
            "\"1s\"]",
            "takes a whole number, or two as a range: 1 or [0, 1]",
            "takes a range, as in [0.9, 1.0]", "takes true or false"};
        from.complain(name, shapes[static_cast<std::size_t>(row.in)]);
        continue;
      }
      limit range{*values.front(), *values.back()};
      if (list == nullptr && row.in == unit::seconds) range.least = 0;
      if (range.least > range.most) from.complain(name, "its range is empty: smaller value first");
      s_.expect[name] = range;
    }
    from.finish();
  }

  complaints complaints_;
  scenario_fields root_;
  scenario s_;
};

}  // namespace

result<scenario> read_scenario(std::string_view text, const std::string& file) {
  result<toml_node> root = read_toml_tree(text, file);
  if (!root) return root.failure();
  return reader(*root, file).read();
}

result<scenario> load_scenario(file_system& files, const std::string& path) {
  result<std::string> text = read_file(files, path, scenario_limit);
  if (!text) return error{exit_code::bad_config, text.failure().message};
  return read_scenario(*text, path);
}

}  // namespace troupe::actors::chaos
