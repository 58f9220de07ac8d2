#include "actors/chaos/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors::chaos {

std::span<const metric_row> metric_table() {
  using enum unit;
  static const std::vector<metric_row> table = {
      {"detection_p50", seconds, true},
      {"detection_p99", seconds, true},
      {"detection_max", seconds, true},
      {"detection_mean", seconds, true},
      {"unblock_p50", seconds, true},
      {"unblock_p99", seconds, true},
      {"unblock_max", seconds, true},
      {"decision_p50", seconds, true},
      {"decision_p99", seconds, true},
      {"repair_p50", seconds, false},
      {"repair_p99", seconds, false},
      {"stall_p50", seconds, true},
      {"stall_p99", seconds, true},
      {"stall_max", seconds, true},
      {"mttr", seconds, true},
      {"full_speed_p50", seconds, true},
      {"full_speed_p99", seconds, true},
      {"exposed_p99", seconds, true},
      {"exposed_sum", seconds, true},
      {"coordinator_downtime", seconds, false},
      {"steps_lost", count, true},
      {"steps_redone", count, true},
      {"plans", count, true},
      {"members", count, true},
      {"exit", count, true},
      {"flaps_max", count, true},
      {"false_suspicions", count, true},
      {"recoveries", count, true},
      {"refused_old_commits", count, false},
      {"silence", count, true},
      {"rollback", boolean, true},
      {"goodput", ratio, true},
      {"goodput_vs_fault_free", ratio, true},
      {"goodput_vs_available", ratio, true},
      {"effective_time_ratio", ratio, true},
      {"effective_time_ratio_min", ratio, true},
  };
  return table;
}

const metric_row* find_metric(std::string_view name) {
  const auto found = std::ranges::find(metric_table(), name, &metric_row::name);
  return found == metric_table().end() ? nullptr : &*found;
}

std::string in_words(unit in, double value) {
  switch (in) {
    case unit::seconds:
      return fmt::format("{:.3f} s", value);
    case unit::count:
      return fmt::format("{:.0f}", value);
    case unit::boolean:
      return value != 0 ? "true" : "false";
    case unit::ratio:
      break;
  }
  return fmt::format("{:.4g}", value);
}

}  // namespace troupe::actors::chaos
