#include "config/base/clock.hpp"

#include <fmt/format.h>

namespace troupe {
namespace {

class machine_clock final : public clock_source {
 public:
  time_since_start now() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
  wall_time wall() const override { return std::chrono::system_clock::now(); }
};

}  // namespace

clock_source& real_clock() {
  static machine_clock clock;
  return clock;
}

std::string iso_8601(wall_time time) {
  using namespace std::chrono;
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss<milliseconds> clock(floor<milliseconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

}  // namespace troupe
