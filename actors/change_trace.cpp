#include "actors/change_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "config/base/json.hpp"

namespace troupe::actors {
namespace {

// A phase ends with the last mark of this kind.
struct phase_end {
  const char* mark;
  const char* phase;
};
constexpr std::array phases{phase_end{"lost", "notice"},      phase_end{"collecting", "begin"},
                            phase_end{"promised", "collect"}, phase_end{"published", "publish"},
                            phase_end{"adopted", "adopt"},    phase_end{"ready", "get ready"},
                            phase_end{"go", "begin steps"},   phase_end{"committed", "first step"}};

constexpr double us = 1e6;

class events {
 public:
  void name(const char* what, int row, const std::string& is) {
    json_line line = begin(what, "M", row);
    line.begin_object("args").text("name", is).end();
    add(line);
  }
  void slice(const std::string& what, int row, double from, double to, const std::string& words) {
    json_line line = begin(what, "X", row);
    line.number("ts", from * us).number("dur", (to - from) * us);
    if (!words.empty()) line.begin_object("args").text("words", words).end();
    add(line);
  }
  void instant(const std::string& what, int row, double at, const std::string& words) {
    json_line line = begin(what, "i", row);
    line.text("s", "t").number("ts", at * us);
    if (!words.empty()) line.begin_object("args").text("words", words).end();
    add(line);
  }
  std::string finish(std::uint64_t plan) const {
    return "{\"displayTimeUnit\":\"ms\",\"plan\":" + fmt::format("{}", plan) +
           ",\"traceEvents\":[\n" + text_ + "\n]}\n";
  }

 private:
  static json_line begin(const std::string& what, const char* kind, int row) {
    json_line line;
    line.text("name", what).text("ph", kind).text("cat", "control").u64("pid", 1).i64("tid", row);
    return line;
  }
  void add(json_line& line) {
    std::string one = line.finish();
    one.pop_back();
    text_ += (text_.empty() ? "" : ",\n") + one;
  }

  std::string text_;
};

}  // namespace

std::string to_json(const change_trace& t) {
  events all;
  all.name("process_name", 0, fmt::format("run {}, plan {}: {}", t.run, t.number, t.reason));
  all.name("thread_name", 0, "phases");
  std::vector<std::string> rows;  // members, by row - 1
  const auto row_of = [&](const std::string& name) {
    const auto known = std::ranges::find(rows, name);
    const auto row = static_cast<int>(known - rows.begin()) + 1;
    if (known == rows.end()) {
      rows.push_back(name);
      all.name("thread_name", row, name);
    }
    return row;
  };
  std::vector<change_trace::mark> marks = t.marks;
  std::ranges::stable_sort(marks, {}, &change_trace::mark::mono);

  std::optional<double> at;  // where the next phase begins
  for (const change_trace::lost_member& l : t.lost) {
    if (l.heard <= 0 || l.noticed < l.heard) continue;
    all.slice("silent", row_of(l.name), l.heard, l.noticed, l.how);
    at = std::min(at.value_or(l.heard), l.heard);
  }
  if (!at && !marks.empty()) at = marks.front().mono;
  for (const phase_end& p : phases) {
    std::optional<double> end;
    for (const change_trace::mark& m : marks) {
      if (m.what == p.mark) end = std::max(end.value_or(m.mono), m.mono);
    }
    if (!end || !at || *end <= *at) continue;
    all.slice(p.phase, 0, *at, *end, "");
    at = end;
  }
  for (const change_trace::mark& m : marks) {
    const auto lost = std::ranges::find(t.lost, m.who, &change_trace::lost_member::name);
    const bool says_why = m.what == "lost" && lost != t.lost.end();
    all.instant(m.what, row_of(m.who), m.mono, says_why ? lost->how : "");
  }
  return all.finish(t.number);
}

std::string file_of(const change_trace& t) {
  return fmt::format("{}-{}.json", t.lost.empty() ? "change" : "recovery", t.number);
}

std::vector<std::string> surplus_traces(std::vector<std::string> names, std::size_t most) {
  const auto number_of = [](const std::string& name) -> std::optional<std::uint64_t> {
    for (const std::string_view stem : {"change-", "recovery-"}) {
      if (!name.starts_with(stem) || !name.ends_with(".json")) continue;
      std::uint64_t number = 0;
      const auto [end, trouble] =
          std::from_chars(name.data() + stem.size(), name.data() + name.size(), number);
      if (trouble == std::errc{} && std::string_view(end) == ".json") return number;
    }
    return std::nullopt;  // not ours
  };
  std::erase_if(names, [&](const std::string& name) { return !number_of(name); });
  if (names.size() <= most) return {};
  std::ranges::sort(names, {}, [&](const std::string& name) { return *number_of(name); });
  names.resize(names.size() - most);
  return names;
}

}  // namespace troupe::actors
