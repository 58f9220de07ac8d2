#include "tests/tidy/rules.hpp"

#include <algorithm>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

namespace troupe::tidy {
namespace {

using names = std::vector<std::string>;

// Bottom to top. A folder may include from itself and from these.
const std::map<std::string, names>& allowed_includes() {
  static const std::map<std::string, names> table = {
      {"config/base", {}},
      {"config", {"config/base"}},
      {"compute", {"config/base"}},
      {"compute/cpu", {"config/base", "compute"}},
      {"model", {"config/base", "compute"}},
      {"model/data", {"config/base", "compute", "model"}},
      {"model/hub", {"config/base", "compute", "model"}},
      {"model/checkpoint", {"config/base", "compute", "model", "model/hub"}},
      {"comm/wire", {"config/base"}},
      {"comm", {"config/base", "compute", "comm/wire"}},
      {"actors/protocol", {"config/base"}},
      {"actors/wire", {"config/base", "actors/protocol"}},
      {"actors",
       {"config/base", "config", "compute", "compute/cpu", "model", "model/data", "model/hub",
        "model/checkpoint", "comm", "actors/protocol", "actors/wire"}},
      {"actors/sim", {"config/base", "comm", "actors/protocol", "actors/wire", "actors"}},
      {"actors/chaos",
       {"config/base", "compute", "comm", "actors/protocol", "actors/wire", "actors",
        "actors/sim"}},
      {"actors/cli",
       {"config/base", "config", "compute", "compute/cpu", "model", "model/data", "model/hub",
        "model/checkpoint", "comm", "actors/protocol", "actors", "actors/sim", "actors/chaos"}},
  };
  return table;
}

struct home {
  std::string include;  // the beginning of what stands between < and >
  names places;         // beginnings of paths
};

// tests/ may use what it tests; fmt and the system's headers are at home everywhere.
const std::vector<home>& homes() {
  static const std::vector<home> table = {
      {"toml++/", {"config/load", "actors/chaos/scenario_toml"}},
      {"hwy/", {"compute/cpu/"}},
      {"immintrin.h", {"compute/cpu/"}},
      {"xxhash.h", {"config/base/"}},
      {"CLI/", {"actors/cli/"}},
      {"nlohmann/",
       {"config/base/json", "config/print", "model/data/", "model/hub/", "model/checkpoint/",
        "actors/"}},
      {"caf/", {"actors/"}},
      {"ucp/", {"comm/ucx_"}},
      {"ucs/", {"comm/ucx_"}},
      {"capnp/", {"comm/wire/", "actors/wire/"}},
      {"kj/", {"comm/wire/", "actors/wire/"}},
      {"sodium", {"comm/"}},
      {"httplib", {"actors/"}},
      {"gtest/", {"tests/"}},
      {"gmock/", {"tests/"}},
  };
  return table;
}

struct forbidden {
  std::string pattern;  // of code without comments and literals
  std::string instead;
  names places;      // beginnings of paths it is forbidden in
  names exceptions;  // files where it is right
};

const std::vector<forbidden>& forbidden_table() {
  static const std::string libm =
      "libm differs from machine to machine; use compute/math.hpp or compute/scalar_math.hpp";
  static const names bits = {"compute/", "model/", "actors/protocol/", "actors/trainer",
                             "actors/validation"};
  static const names product = {"config/", "compute/", "model/", "actors/"};
  static const std::vector<forbidden> table = {
      // compute/ has functions of these names itself; elsewhere they are called as math::exp.
      {R"((std|[^\w:>)]|^)::(exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|tan|tanh|sinh|cosh|erf|cbrt|hypot)[fl]?\s*\()",
       libm,
       bits,
       {}},
      {R"((^|[^\w.>:])(exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|tan|tanh|sinh|cosh|erf|cbrt|hypot)[fl]\s*\()",
       libm,
       bits,
       {}},
      {R"((^|[^\w.>:])(exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|tan|tanh|sinh|cosh|erf|cbrt|hypot)\s*\()",
       libm,
       {"model/", "actors/protocol/", "actors/trainer", "actors/validation"},
       {}},
      {R"(\b(std::)?(mt19937(_64)?|minstd_rand0?|ranlux\w+|knuth_b|default_random_engine)\b|\b\w+_distribution\b)",
       "the standard library's engines and distributions are not ours to promise; use "
       "compute/random.hpp",
       bits,
       {}},
      {R"((^|[^\w.>:])(std::)?(rand|srand|random|drand48|random_shuffle)\s*\()",
       "use compute/random.hpp",
       product,
       {}},
      {R"(\bstd::(reduce|transform_reduce|execution)\b)",
       "sums have one order: write the loop, or use the fixed tree of config/base/tree.hpp",
       bits,
       {}},
      {R"(\bstd::chrono::\w+_clock\b|\b(time|gettimeofday|clock_gettime)\s*\(\s*(nullptr|NULL|0|CLOCK))",
       "time comes from a clock_source (config/base/clock.hpp) handed to the constructor",
       bits,
       {"compute/cpu/peak.cpp", "compute/cpu/thread_pool.cpp", "compute/timed_executor.cpp",
        "actors/trainer.cpp"}},
      {R"(\bwall\s*\(\s*\))",
       "the wall clock jumps: intervals, deadlines and signs of life are measured by now()",
       {"actors/", "comm/", "compute/", "model/"},
       // What people read, and the number of a life.
       {"actors/console.cpp", "actors/records.cpp", "actors/run_directory.cpp",
        "actors/status_board.cpp", "actors/status_server.cpp", "actors/monitor.hpp",
        "actors/record_writer.cpp", "actors/cli/train_command.cpp"}},
      // safetensors_events.cpp asks its set for a name and never walks it.
      {R"(\bunordered_(map|set)\b)",
       "the order of an unordered container is not the same everywhere; use std::map or a sorted "
       "vector",
       bits,
       {"model/hub/safetensors_events.cpp"}},
      {R"(\bsetlocale\s*\(|\bstd::locale\b|\.imbue\s*\()",
       "the program never touches the locale",
       product,
       {}},
      {R"(\b(std::)?(stof|stod|stold|strtof|strtod|strtold|atof|sscanf)\s*\()",
       "reads numbers by the locale; use std::from_chars",
       product,
       {}},
      {R"(\bstd::to_string\s*\(\s*(static_cast<(double|float)>|\d+\.))",
       "writes numbers by the locale; use fmt::format or json_number",
       product,
       {}},
      {R"(\b(s|sn|f|v|vf|vsn)?printf\s*\()",
       "use fmt",
       product,
       {"config/base/error.cpp", "actors/launcher.cpp", "actors/stop_signals.cpp"}},
      {R"(-ffast-math|\b__attribute__\s*\(\(optimize)", "bits depend on it", product, {}},
  };
  return table;
}

bool begins_with_any(std::string_view path, const names& beginnings) {
  return std::ranges::any_of(beginnings, [&](const std::string& b) { return path.starts_with(b); });
}

bool contains(const names& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

// The include of a line, with its quotes or brackets.
std::optional<std::string> include_in(const std::string& line) {
  static const std::regex pattern(R"(^\s*#\s*include\s*(["<][^">]+)[">].*)");
  std::smatch match;
  if (!std::regex_match(line, match, pattern)) return std::nullopt;
  return match[1];
}

void each_include(const source_tree& tree, const auto& see) {
  for (const auto& [path, text] : tree) {
    if (!is_source(path)) continue;
    std::size_t number = 0;
    for (const std::string& line : lines_of(text)) {
      ++number;
      if (const auto include = include_in(line))
        see(path, number, include->front() == '<', include->substr(1));
    }
  }
}

// All texts of files with this name under a folder, joined.
std::string joined(const source_tree& tree, std::string_view folder, std::string_view name) {
  std::string all;
  for (const auto& [path, text] : tree) {
    if (path.starts_with(folder) && path.ends_with(name)) all += text + "\n";
  }
  return all;
}

bool names_word(const std::string& text, const std::string& word) {
  const auto part_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '/' ||
           c == '-';
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !part_of_name(text[at - 1]);
    const std::size_t end = at + word.size();
    if (begins && (end == text.size() || !part_of_name(text[end]))) return true;
  }
  return false;
}

const std::string promises_page = "docs/architecture.md";
const std::string elsewhere_list = "tests/tidy/tested_elsewhere.txt";

// Folder to line, from the rows "| `folder/` | promise |" of the page.
std::map<std::string, std::size_t> promised_folders(const std::string& page) {
  static const std::regex row(R"(^\|\s*`([a-z_./]+)/`\s*\|\s*\S.*)");
  std::map<std::string, std::size_t> rows;
  std::size_t number = 0;
  for (const std::string& line : lines_of(page)) {
    ++number;
    std::smatch match;
    if (std::regex_match(line, match, row)) rows.emplace(match[1], number);
  }
  return rows;
}

}  // namespace

findings include_directions(const source_tree& tree) {
  findings all;
  each_include(tree, [&](const std::string& path, std::size_t line, bool system,
                         const std::string& target) {
    const std::string from = folder_of(path), to = folder_of(target);
    if (system) return;
    if (!tree.contains(target)) {
      all.push_back(
          {path, line,
           "includes \"" + target + "\", which is no file of the tree (paths start at the root)"});
      return;
    }
    if (from == to || from.starts_with("tests")) return;
    const auto rule = allowed_includes().find(from);
    if (rule == allowed_includes().end()) {
      all.push_back(
          {path, line, "the folder " + from + " has no row in the table of tests/tidy/rules.cpp"});
    } else if (!contains(rule->second, to)) {
      all.push_back(
          {path, line, from + " must not use " + to + " (docs/architecture.md, folders)"});
    }
  });
  return all;
}

findings library_homes(const source_tree& tree) {
  findings all;
  each_include(
      tree, [&](const std::string& path, std::size_t line, bool system, const std::string& target) {
        if (!system || path.starts_with("tests/")) return;
        for (const home& h : homes()) {
          if (!target.starts_with(h.include) || begins_with_any(path, h.places)) continue;
          std::string where;
          for (const std::string& place : h.places) where += " " + place;
          all.push_back({path, line, "<" + target + "> is at home in" + where});
        }
      });
  return all;
}

findings folder_promises(const source_tree& tree) {
  const auto page = tree.find(promises_page);
  if (page == tree.end()) return {{promises_page, 0, "is missing"}};
  const auto promised = promised_folders(page->second);
  findings all;
  std::set<std::string> missing;
  for (const auto& [path, text] : tree) {
    const std::string folder = folder_of(path);
    const bool below_a_promise = path.starts_with("tests/") || path.starts_with("docs/") ||
                                 path.starts_with("config/presets/");
    if (folder.empty() || promised.contains(folder) ||
        (below_a_promise && promised.contains(folder.substr(0, folder.find('/'))))) {
      continue;
    }
    missing.insert(folder);
  }
  for (const std::string& folder : missing) {
    all.push_back({promises_page, 0, "has no row with the promise of " + folder + "/"});
  }
  for (const auto& [folder, line] : promised) {
    const bool exists = std::ranges::any_of(
        tree, [&](const auto& file) { return file.first.starts_with(folder + "/"); });
    if (!exists)
      all.push_back({promises_page, line, "promises " + folder + "/, which does not exist"});
  }
  return all;
}

findings registered_tests(const source_tree& tree) {
  const std::string lists = joined(tree, "tests/", "CMakeLists.txt");
  findings all;
  for (const auto& [path, text] : tree) {
    if (!path.starts_with("tests/") || !path.ends_with("_test.cpp")) continue;
    // foreach(name a b) troupe_test(folder/${name}_test.cpp) names them, too.
    const std::string name = path.substr(6), folder = folder_of(name);
    const std::string stem = name.substr(folder.size() + 1, name.size() - folder.size() - 10);
    const bool in_a_loop =
        lists.find(folder + "/${") != std::string::npos && names_word(lists, stem);
    if (!names_word(lists, name) && !in_a_loop) {
      all.push_back({path, 0,
                     "is forgotten: no CMakeLists.txt under tests/ has troupe_test(" +
                         path.substr(6) + " ...)"});
    }
  }
  return all;
}

findings compiled_sources(const source_tree& tree) {
  findings all;
  for (const auto& [path, text] : tree) {
    if (!path.ends_with(".cpp") || path.starts_with("tests/")) continue;
    const auto list = tree.find(folder_of(path) + "/CMakeLists.txt");
    const std::string name = path.substr(path.rfind('/') + 1);
    if (list == tree.end() || !names_word(list->second, name)) {
      all.push_back(
          {path, 0, "is not compiled: name it in the CMakeLists.txt beside it, or remove it"});
    }
  }
  return all;
}

findings mirrored_tests(const source_tree& tree) {
  findings all;
  std::map<std::string, std::size_t> elsewhere;
  const auto list = tree.find(elsewhere_list);
  std::size_t number = 0;
  for (const std::string& line : lines_of(list == tree.end() ? "" : list->second)) {
    ++number;
    std::istringstream words(line);
    std::string source, test, reason;
    if (!(words >> source) || source.front() == '#') continue;
    if (!(words >> test >> reason)) {
      all.push_back({elsewhere_list, number, "a line is: source, the test that covers it, why"});
      continue;
    }
    elsewhere.emplace(source, number);
    if (!tree.contains(source)) all.push_back({elsewhere_list, number, source + " does not exist"});
    if (!tree.contains(test)) all.push_back({elsewhere_list, number, test + " does not exist"});
  }
  for (const auto& [path, text] : tree) {
    if (!path.ends_with(".cpp") || path.starts_with("tests/")) continue;
    const std::string test = "tests/" + path.substr(0, path.size() - 4) + "_test.cpp";
    const auto line = elsewhere.find(path);
    if (tree.contains(test) && line != elsewhere.end()) {
      all.push_back(
          {elsewhere_list, line->second, path + " has a test of its own now: remove the line"});
    } else if (!tree.contains(test) && line == elsewhere.end()) {
      all.push_back(
          {path, 0, "has no " + test + " (or a justified line in " + elsewhere_list + ")"});
    }
  }
  return all;
}

findings forbidden_calls(const source_tree& tree) {
  std::vector<std::regex> patterns;
  for (const forbidden& f : forbidden_table())
    patterns.emplace_back(f.pattern, std::regex::optimize);
  findings all;
  for (const auto& [path, text] : tree) {
    if (!is_source(path)) continue;
    const std::vector<std::string> lines = lines_of(code_only(text));
    for (std::size_t p = 0; p < patterns.size(); ++p) {
      const forbidden& f = forbidden_table()[p];
      if (!begins_with_any(path, f.places) || contains(f.exceptions, path)) continue;
      for (std::size_t i = 0; i < lines.size(); ++i) {
        std::smatch match;
        if (!std::regex_search(lines[i], match, patterns[p])) continue;
        all.push_back({path, i + 1, "`" + match.str() + "`: " + f.instead});
      }
    }
  }
  return all;
}

findings leftovers(const source_tree& tree) {
  static const std::regex note(R"(\b(TODO|FIXME|XXX|HACK)\b)");
  static const std::regex debug(
      R"((cerr|cout|fprintf|printf|puts)\b.*"[^"]*\b(DEBUG|debug:|here\b|xxx)|^\s*#\s*if\s+0\b)");
  findings all;
  for (const auto& [path, text] : tree) {
    if (path.starts_with("tests/tidy/") || path.starts_with("docs/configuration.md")) continue;
    const bool script =
        path.ends_with(".sh") || path.ends_with(".cmake") || path.ends_with("CMakeLists.txt");
    if (!is_source(path) && !script && !path.ends_with(".md") && !path.ends_with(".toml")) continue;
    const std::vector<std::string> lines = lines_of(text);
    if (is_source(path) && lines.size() > 500) {
      all.push_back(
          {path, 0,
           "has " + std::to_string(lines.size()) + " lines: it holds more than one concept"});
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string& line = lines[i];
      if (line.find('\t') != std::string::npos) all.push_back({path, i + 1, "has a tab"});
      if (line.ends_with(' ') || line.ends_with('\r'))
        all.push_back({path, i + 1, "ends in a blank"});
      if (std::regex_search(line, note))
        all.push_back({path, i + 1, "has a note to oneself: do it or file it"});
      if (is_source(path) && std::regex_search(line, debug))
        all.push_back({path, i + 1, "looks like a line left from debugging"});
    }
    if (!text.empty() && text.back() != '\n')
      all.push_back({path, lines.size(), "has no newline at its end"});
  }
  return all;
}

findings run_examples(const source_tree& tree) {
  std::string run = joined(tree, "tests/", "CMakeLists.txt");
  findings all;
  // Scripts that a script runs are run too; as often as there are files, so that chains of any
  // length count.
  std::set<std::string> reached;
  for (std::size_t round = 0; round < tree.size(); ++round) {
    const std::size_t before = reached.size();
    for (const auto& [path, text] : tree) {
      if (!path.starts_with("examples/") || reached.contains(path) ||
          run.find(path) == std::string::npos)
        continue;
      reached.insert(path);
      if (path.ends_with(".sh")) run += text;
    }
    if (reached.size() == before) break;
  }
  for (const auto& [path, text] : tree) {
    if (path.starts_with("examples/") && !reached.contains(path)) {
      all.push_back(
          {path, 0, "is an example that nothing runs: name it in a CMakeLists.txt under tests/"});
    }
  }
  return all;
}

findings self_contained_pages(const source_tree& tree) {
  static const std::regex link(R"(\]\(([^)#\s]+)[^)]*\))");
  static const std::regex quoted(
      R"(`((?:config|compute|model|actors|tests|examples|docs|cmake|\.ci)/[\w./-]*)`)");
  static const std::regex absolute(
      R"re((^|[\s`("'])(/(?:[a-z][\w.-]*)/[^\s`)"']*|\.\./\.\./[^\s`)"']*))re");
  static const names known_roots = {"/usr/", "/tmp/", "/etc/", "/proc/", "/dev/", "/sys/", "/var/"};
  const auto exists = [&](std::string path) {
    while (path.ends_with('/')) path.pop_back();
    return tree.contains(path) || std::ranges::any_of(tree, [&](const auto& file) {
             return file.first.starts_with(path + "/");
           });
  };
  findings all;
  for (const auto& [path, text] : tree) {
    if (!path.ends_with(".md")) continue;
    std::size_t number = 0;
    const auto each = [&](const std::string& line, const std::regex& pattern, const auto& see) {
      for (std::sregex_iterator at(line.begin(), line.end(), pattern), end; at != end; ++at)
        see(*at);
    };
    for (const std::string& line : lines_of(text)) {
      ++number;
      each(line, link, [&](const std::smatch& match) {
        const std::string target = match[1];
        if (target.find("://") != std::string::npos || target.starts_with("mailto:")) return;
        const std::string full =
            (std::filesystem::path(folder_of(path)) / target).lexically_normal().generic_string();
        if (!exists(full))
          all.push_back({path, number, "links to " + target + ", which is not in the repository"});
      });
      each(line, quoted, [&](const std::smatch& match) {
        if (!exists(match[1]))
          all.push_back(
              {path, number, "names " + match[1].str() + ", which is not in the repository"});
      });
      each(line, absolute, [&](const std::smatch& match) {
        if (!begins_with_any(match[2].str(), known_roots)) {
          all.push_back(
              {path, number, "names " + match[2].str() + ", a place outside the repository"});
        }
      });
    }
  }
  return all;
}

}  // namespace troupe::tidy
