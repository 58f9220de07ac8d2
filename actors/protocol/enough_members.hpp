// May the world take steps with those that are in it? With fewer members that compute than a person
// asked for, it waits: it keeps its state, makes copies and lets others in, but no step is begun.
// It does not wait for ever.
//
// The waiting goes on from plan to plan, as when one of two that are missing comes, so the time is
// kept here, by every member, and not with the plan or its coordinator.
// Not chosen: not to publish a plan with too few. The state of who is lost would be given up only
// when somebody comes, so the one who comes could not be let in.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "actors/protocol/plan.hpp"
#include "config/base/clock.hpp"

namespace troupe::actors::protocol {

class enough_members {
 public:
  enough_members(std::uint32_t needed, std::chrono::nanoseconds patience)
      : needed_(needed), patience_(patience) {}

  // A plan came into force.
  void in_force(const plan& p, time_since_start now);

  bool waits() const { return since_.has_value(); }
  // The plan that came into force ended a wait that was so long; nothing: there was none.
  std::optional<std::chrono::nanoseconds> waited() const { return waited_; }
  // Until it is to be given up; requires waits().
  std::chrono::nanoseconds left(time_since_start now) const;

  std::string words() const;  // what it waits for
  std::string words_of_giving_up() const;

 private:
  std::uint32_t needed_;
  std::chrono::nanoseconds patience_;
  std::uint64_t computing_ = 0;
  std::optional<time_since_start> since_;
  std::optional<std::chrono::nanoseconds> waited_;
};

}  // namespace troupe::actors::protocol
