#include "actors/protocol/enough_members.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/base/error.hpp"

namespace troupe::actors::protocol {

void enough_members::in_force(const plan& p, time_since_start now) {
  computing_ = static_cast<std::uint64_t>(
      std::ranges::count_if(p.members, [](const plan_member& m) { return m.leaves > 0; }));
  waited_.reset();
  if (computing_ < needed_) {
    if (!since_) since_ = now;
    return;
  }
  if (since_) waited_ = now - *since_;
  since_.reset();
}

std::chrono::nanoseconds enough_members::left(time_since_start now) const {
  ensure(since_.has_value(), "nobody waits for members");
  return std::max(std::chrono::nanoseconds(0), patience_ - (now - *since_));
}

std::string enough_members::words() const {
  return fmt::format("{} more member{} that compute{}: there {} {}, and elastic.min_members is {}",
                     needed_ - computing_, needed_ - computing_ == 1 ? "" : "s",
                     needed_ - computing_ == 1 ? "s" : "", computing_ == 1 ? "is" : "are",
                     computing_, needed_);
}

std::string enough_members::words_of_giving_up() const {
  return fmt::format("waited {} s (elastic.wait_timeout_seconds) for {}",
                     std::chrono::duration<double>(patience_).count(), words());
}

}  // namespace troupe::actors::protocol
