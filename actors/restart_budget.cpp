#include "actors/restart_budget.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

std::optional<time_since_start> restart_budget::take(time_since_start now, bool calm) {
  std::erase_if(taken_, [&](time_since_start due) { return due + rule_.window <= now; });
  if (rule_.limit >= 0 && taken_.size() >= static_cast<std::size_t>(rule_.limit)) {
    return std::nullopt;
  }
  time_since_start pause{0};
  if (!taken_.empty() || calm) pause = std::min(rule_.first_pause, rule_.longest_pause);
  for (std::size_t i = 1; i < taken_.size() && pause < rule_.longest_pause; ++i) {
    pause = std::min(2 * pause, rule_.longest_pause);
  }
  taken_.push_back(now + pause);
  return taken_.back();
}

std::string restart_budget::words() const {
  return fmt::format("restart {}{} within {} s", taken_.size(),
                     rule_.limit < 0 ? "" : fmt::format(" of {}", rule_.limit),
                     std::chrono::duration<double>(rule_.window).count());
}

}  // namespace troupe::actors
