#include "actors/chaos/scenario_fields.hpp"

#include <gmock/gmock.h>

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;

TEST(parse_duration, adds_up_numbers_with_units) {
  EXPECT_EQ(parse_duration("90s"), duration(90s));
  EXPECT_EQ(parse_duration("400ms"), duration(400ms));
  EXPECT_EQ(parse_duration("1h30m"), duration(90min));
  EXPECT_EQ(parse_duration("1.5s"), duration(1500ms));
  EXPECT_EQ(parse_duration("0s"), duration(0));
  EXPECT_EQ(parse_duration("7us3ns"), duration(7003));
}

TEST(parse_duration, refuses_everything_else) {
  for (const char* text : {"", "5", "s", "5 s", "-1s", "1d", "1s2", "nans", "99999999999h"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(durations, are_printed_in_the_largest_exact_unit_and_read_back) {
  for (const duration d :
       {duration(0), duration(1), duration(1500ms), duration(90s), duration(2h), duration(60s)}) {
    EXPECT_EQ(parse_duration(to_text(d)), d) << to_text(d);
  }
  EXPECT_EQ(to_text(duration(60s)), "1m");
  EXPECT_EQ(to_text(duration(1500ms)), "1500ms");
}

TEST(suggestion, is_the_nearest_or_the_few_there_are) {
  EXPECT_EQ(suggestion("stepp", {"step", "time"}), "; did you mean step?");
  EXPECT_EQ(suggestion("zzzzzz", {"step", "time"}), "; there are step, time");
}

TEST(complaints, stand_in_the_order_of_lines) {
  complaints c("f.toml");
  EXPECT_TRUE(c.empty());
  c.add(9, "b", "late");
  c.add(2, "", "early");
  EXPECT_EQ(c.as_error().message, "f.toml:2: early\nf.toml:9: b: late");
}

}  // namespace
}  // namespace troupe::actors::chaos
