#include "actors/chaos/named_points.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "actors/protocol_points.hpp"

namespace troupe::actors::chaos {

namespace {

// Of a save; no actor comes by them yet.
constexpr std::string_view of_a_save[] = {"save-begin",       "shard-written",   "shard-synced",
                                          "manifest-written", "manifest-linked", "old-removed"};

}  // namespace

const std::vector<std::string>& point_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < protocol_point_count; ++i) {
      all.emplace_back(name_of(static_cast<protocol_point>(i)));
    }
    all.insert(all.end(), std::begin(of_a_save), std::end(of_a_save));
    return all;
  }();
  return names;
}

bool is_reached(std::string_view point) { return protocol_point_named(point).has_value(); }

const std::vector<std::string>& event_names() {
  static const std::vector<std::string> names = {
      "plan-published",    "member-lost",        "member-joined",
      "recovered",         "checkpoint-started", "checkpoint-published",
      "checkpoint-failed", "validation",         "notice",
      "straggler",         "corruption",         "redundancy-restored",
      "step-skipped"};
  return names;
}

// Of messages each one counts, of layers and blocks each of the member's.
bool counts(std::string_view point) {
  constexpr std::string_view several[] = {
      "microbatch-done", "partial-sent", "reduced",      "grad-forwarded", "grad-held",
      "acked",           "commit-sent",  "applying",     "applied",        "params-sent",
      "suspected",       "collect-sent", "verdict-sent", "copy-begin",     "copy-half",
      "copy-verified",   "shard-written"};
  return std::ranges::find(several, point) != std::end(several);
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

std::string event_of_record(std::string_view record) {
  if (record == "generation") return "plan-published";
  std::string name(record);
  std::ranges::replace(name, '_', '-');
  return name;
}

}  // namespace troupe::actors::chaos
