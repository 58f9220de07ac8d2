// Time comes through this interface, so that a test moves it by hand. Nothing that decides may ask
// for it: a decision gets `now` as an argument.
#pragma once

#include <chrono>
#include <string>

namespace troupe {

using time_since_start = std::chrono::nanoseconds;  // monotonic
using wall_time = std::chrono::sys_time<std::chrono::nanoseconds>;

class clock_source {
 public:
  virtual ~clock_source() = default;
  virtual time_since_start now() const = 0;  // never goes back; its zero means nothing
  virtual wall_time wall() const = 0;        // may jump; only for people to read
};

clock_source& real_clock();

// Stands still until it is moved.
class manual_clock final : public clock_source {
 public:
  explicit manual_clock(wall_time start = {}) : start_(start) {}
  time_since_start now() const override { return passed_; }
  wall_time wall() const override { return start_ + passed_; }
  void advance(std::chrono::nanoseconds by) { passed_ += by; }
  void jump_wall(std::chrono::nanoseconds by) { start_ += by; }

 private:
  wall_time start_;
  time_since_start passed_{0};
};

// "2024-02-29T23:59:59.123Z": ISO 8601, UTC, milliseconds rounded down.
std::string iso_8601(wall_time time);

}  // namespace troupe
