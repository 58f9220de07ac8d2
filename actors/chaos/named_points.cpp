#include "actors/chaos/named_points.hpp"

#include <algorithm>
#include <charconv>

namespace troupe::actors::chaos {

const std::vector<std::string>& point_names() {
  static const std::vector<std::string> names = {
      // one step
      "step-begin", "microbatch-done", "partial-sent", "reduced", "grad-forwarded", "grad-held",
      "acked", "voted", "votes-complete", "decided", "commit-sent", "commit-seen", "applying",
      "applied", "params-sent", "params-complete", "stable",
      // a change
      "suspected", "collect-sent", "promised", "collected", "plan-written", "published",
      "verdict-sent", "adopted", "copy-begin", "copy-half", "copy-verified", "resumed",
      "redundancy-restored",
      // a save
      "save-begin", "shard-written", "shard-synced", "manifest-written", "manifest-linked",
      "old-removed",
      // people
      "notice-received", "drained", "join-hello", "join-admitted", "command-acked"};
  return names;
}

const std::vector<std::string>& event_names() {
  static const std::vector<std::string> names = {
      "plan-published",    "member-lost",        "member-joined",
      "recovered",         "checkpoint-started", "checkpoint-published",
      "checkpoint-failed", "validation",         "notice",
      "straggler",         "corruption",         "redundancy-restored",
      "step-skipped"};
  return names;
}

bool counts(std::string_view point) {
  return point == "microbatch-done" || point == "commit-sent" || point == "params-sent" ||
         point == "collect-sent" || point == "verdict-sent" || point == "shard-written";
}

std::optional<named_point> parse_point(std::string_view text) {
  const std::size_t colon = text.find(':');
  named_point point{std::string(text.substr(0, colon)), {}};
  if (std::ranges::find(point_names(), point.name) == point_names().end()) return std::nullopt;
  if (colon == std::string_view::npos) return point;
  const std::string_view digits = text.substr(colon + 1);
  std::uint32_t k = 0;
  const auto [end, trouble] = std::from_chars(digits.data(), digits.data() + digits.size(), k);
  if (trouble != std::errc{} || end != digits.data() + digits.size() || k == 0 ||
      !counts(point.name)) {
    return std::nullopt;
  }
  point.k = k;
  return point;
}

std::string to_text(const named_point& point) {
  return point.k ? point.name + ":" + std::to_string(*point.k) : point.name;
}

bool seen_from_outside(std::string_view point) {
  return point == "step-begin" || point == "stable";
}

bool reached_in_workers(std::string_view point) {
  constexpr std::string_view all[] = {"step-begin",  "grad-held", "voted",
                                      "commit-seen", "applied",   "copy-verified",
                                      "promised",    "adopted",   "stable"};
  return std::ranges::find(all, point) != std::end(all);
}

std::string event_of_record(std::string_view record) {
  if (record == "generation") return "plan-published";
  std::string name(record);
  std::ranges::replace(name, '_', '-');
  return name;
}

}  // namespace troupe::actors::chaos
