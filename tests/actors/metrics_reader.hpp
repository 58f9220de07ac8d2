// A strict reader of Prometheus' text format 0.0.4: whatever it does not expect is a complaint.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

struct metrics_read {
  std::map<std::string, std::string> types;  // of families
  std::map<std::string, double> series;      // name and labels as written
  std::map<std::string, std::set<std::string>> label_values;
  std::vector<std::string> complaints;
};

class metrics_reader {
 public:
  static metrics_read read(const std::string& text) {
    metrics_reader reader;
    if (text.empty() || text.back() != '\n') reader.complain("the last line has no end", "");
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      reader.line(text.substr(at, end - at));
      at = end + 1;
    }
    reader.check_histograms();
    return reader.read_;
  }

 private:
  void complain(const std::string& what, const std::string& where) {
    read_.complaints.push_back(what + ": " + where);
  }

  static bool is_name(std::string_view text) {
    const auto first = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    return !text.empty() && first(text[0]) &&
           std::ranges::all_of(text, [&](char c) { return first(c) || (c >= '0' && c <= '9'); });
  }

  void line(const std::string& text) {
    if (text.starts_with("# HELP ")) return help(text.substr(7), text);
    if (text.starts_with("# TYPE ")) return type(text.substr(7), text);
    if (text.empty() || text[0] == '#') return complain("neither a comment nor a sample", text);
    sample(text);
  }

  void help(const std::string& rest, const std::string& text) {
    family_ = rest.substr(0, rest.find(' '));
    if (!is_name(family_)) complain("a family's name", text);
    if (!helped_.insert(family_).second) complain("a second HELP", text);
    if (rest.size() <= family_.size() + 1) complain("an empty HELP", text);
  }

  void type(const std::string& rest, const std::string& text) {
    const std::size_t blank = rest.find(' ');
    if (rest.substr(0, blank) != family_) complain("TYPE is not behind its HELP", text);
    const std::string kind = blank == std::string::npos ? "" : rest.substr(blank + 1);
    if (kind != "gauge" && kind != "counter" && kind != "histogram") complain("a type", text);
    if (!read_.types.emplace(family_, kind).second) complain("a second TYPE", text);
    if ((kind == "counter") != family_.ends_with("_total"))
      complain("counters end in _total", text);
  }

  void sample(const std::string& text) {
    const std::size_t name_end = text.find_first_of("{ ");
    const std::string name = text.substr(0, name_end);
    std::string base = name;
    if (read_.types.contains(family_) && read_.types[family_] == "histogram") {
      for (const char* ending : {"_bucket", "_sum", "_count"}) {
        if (name == family_ + ending) base = family_;
      }
    }
    if (base != family_) complain("a sample away from its family", text);
    std::size_t at = name_end;
    std::map<std::string, std::string> labels;
    if (at != std::string::npos && text[at] == '{' && !read_labels(text, at, labels)) {
      return complain("labels", text);
    }
    if (at == std::string::npos || text[at] != ' ') return complain("no value", text);
    const std::optional<double> value = number(text.substr(at + 1));
    if (!value) return complain("a value", text);
    if (!read_.series.emplace(text.substr(0, at), *value).second) complain("a second sample", text);
    for (const auto& [key, content] : labels) read_.label_values[key].insert(content);
  }

  // From '{' to behind '}'.
  static bool read_labels(const std::string& text, std::size_t& at,
                          std::map<std::string, std::string>& labels) {
    while (true) {
      const std::size_t equals = text.find("=\"", ++at);
      if (equals == std::string::npos) return false;
      const std::string key = text.substr(at, equals - at);
      std::string content;
      for (at = equals + 2; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\') {
          ++at;
          if (at == text.size() || std::string_view("\\\"n").find(text[at]) == std::string::npos) {
            return false;
          }
          content += text[at] == 'n' ? '\n' : text[at];
        } else {
          content += text[at];
        }
      }
      if (!is_name(key) || !labels.emplace(key, content).second || ++at >= text.size())
        return false;
      if (text[at] == '}') return ++at < text.size();
      if (text[at] != ',') return false;
    }
  }

  static std::optional<double> number(const std::string& text) {
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "+Inf") return std::numeric_limits<double>::infinity();
    if (text == "-Inf") return -std::numeric_limits<double>::infinity();
    double value = 0;
    const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (trouble != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
  }

  // Cumulative buckets, the last of them +Inf and equal to _count.
  void check_histograms() {
    for (const auto& [family, kind] : read_.types) {
      if (kind != "histogram") continue;
      std::map<std::string, std::map<double, double>> buckets;  // by other labels
      for (const auto& [name, value] : read_.series) {
        const std::size_t le = name.find("le=\"");
        if (!name.starts_with(family + "_bucket{") || le == std::string::npos) continue;
        const std::string bound = name.substr(le + 4, name.find('"', le + 4) - le - 4);
        const std::size_t brace = family.size() + 7;
        std::string others = name.substr(brace, le - brace);
        if (others == "{") others.clear();
        if (others.ends_with(',')) others.back() = '}';
        buckets[others][number(bound).value_or(-1)] = value;
      }
      if (buckets.empty()) complain("a histogram without buckets", family);
      for (const auto& [others, counts] : buckets) {
        double before = 0;
        for (const auto& [bound, value] : counts) {
          if (value < before) complain("buckets are not cumulative", family + others);
          before = value;
        }
        const auto count = read_.series.find(family + "_count" + others);
        if (!std::isinf(counts.rbegin()->first)) complain("no +Inf bucket", family + others);
        if (count == read_.series.end() || count->second != before) {
          complain("_count is not the +Inf bucket", family + others);
        }
        if (!read_.series.contains(family + "_sum" + others)) complain("no _sum", family + others);
      }
    }
  }

  metrics_read read_;
  std::string family_;
  std::set<std::string> helped_;
};

}  // namespace troupe::actors
