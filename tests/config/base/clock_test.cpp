#include "config/base/clock.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;

TEST(iso_8601, prints_utc_with_milliseconds) {
  const wall_time leap =
      std::chrono::sys_days{std::chrono::year{2024} / 2 / 29} + 23h + 59min + 59s + 123999us;
  EXPECT_EQ(iso_8601(leap), "2024-02-29T23:59:59.123Z");
  EXPECT_EQ(iso_8601(wall_time{}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(iso_8601(wall_time{-1ms}), "1969-12-31T23:59:59.999Z");
}

TEST(manual_clock, moves_only_by_hand) {
  manual_clock clock(wall_time{1h});
  EXPECT_EQ(clock.now(), 0ns);
  clock.advance(1500ms);
  EXPECT_EQ(clock.now(), 1500ms);
  EXPECT_EQ(clock.wall(), wall_time{1h + 1500ms});
}

TEST(real_clock, never_goes_back) {
  const auto first = real_clock().now();
  EXPECT_LE(first, real_clock().now());
}

}  // namespace
}  // namespace troupe
