// What happens later in virtual time: functions with a moment each, called in order of moments and,
// within one, in the order in which they were entered.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "config/base/clock.hpp"

namespace troupe::actors::sim {

class timeline {
 public:
  void at(time_since_start when, std::function<void()> what) {
    events_.emplace(std::pair(when, next_++), std::move(what));
  }
  std::optional<time_since_start> next() const {
    if (events_.empty()) return std::nullopt;
    return events_.begin()->first.first;
  }
  // Calls what is due at `now`, also what is entered meanwhile.
  void run_until(time_since_start now) {
    while (!events_.empty() && events_.begin()->first.first <= now) {
      const std::function<void()> what = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      what();
    }
  }

 private:
  std::map<std::pair<time_since_start, std::uint64_t>, std::function<void()>> events_;
  std::uint64_t next_ = 0;
};

}  // namespace troupe::actors::sim
