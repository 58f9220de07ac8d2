// When an empty slot is filled again, and when it stays empty.
#include "actors/restart_budget.hpp"

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(restart_budget, the_first_start_follows_at_once_and_each_further_after_twice_the_pause) {
  restart_budget b({.limit = -1,
                    .window = seconds(600),
                    .first_pause = milliseconds(200),
                    .longest_pause = seconds(1)});
  const time_since_start now = seconds(5);
  for (const int pause : {0, 200, 400, 800, 1000, 1000, 1000}) {
    EXPECT_EQ(b.take(now, false), now + milliseconds(pause));
  }
}

TEST(restart_budget, who_is_calm_waits_before_the_first_start_as_well) {
  restart_budget b({});
  EXPECT_EQ(b.take(seconds(1), true), seconds(1) + milliseconds(200));
  EXPECT_EQ(b.take(seconds(1), true), seconds(1) + milliseconds(200));
  EXPECT_EQ(b.take(seconds(1), true), seconds(1) + milliseconds(400));
}

TEST(restart_budget, a_spent_budget_gives_nothing_until_the_window_has_passed) {
  restart_budget b({.limit = 2,
                    .window = seconds(600),
                    .first_pause = milliseconds(200),
                    .longest_pause = seconds(30)});
  EXPECT_EQ(b.words(), "restart 0 of 2 within 600 s");
  EXPECT_EQ(b.take(seconds(0), false), seconds(0));
  EXPECT_EQ(b.words(), "restart 1 of 2 within 600 s");
  EXPECT_EQ(b.take(seconds(100), false), seconds(100) + milliseconds(200));
  EXPECT_EQ(b.take(seconds(599), false), std::nullopt);
  EXPECT_EQ(b.take(seconds(600), false), seconds(600) + milliseconds(200));
  EXPECT_EQ(b.taken(), 2u);
  EXPECT_EQ(b.take(seconds(700), false), std::nullopt) << "the second one is due until 700.2";
  EXPECT_EQ(b.take(seconds(1400), false), seconds(1400)) << "all are forgotten, so it is the first";
}

TEST(restart_budget, none_is_none_and_no_limit_is_none_for_ever) {
  restart_budget never(
      {.limit = 0, .window = seconds(600), .first_pause = {}, .longest_pause = {}});
  EXPECT_EQ(never.take(seconds(1), false), std::nullopt);
  restart_budget always({.limit = -1,
                         .window = seconds(600),
                         .first_pause = milliseconds(200),
                         .longest_pause = seconds(30)});
  for (int i = 0; i < 1000; ++i) EXPECT_NE(always.take(seconds(1), false), std::nullopt);
  EXPECT_EQ(always.take(seconds(1), false), seconds(31));
  EXPECT_EQ(always.words(), "restart 1001 within 600 s");
}

}  // namespace
}  // namespace troupe::actors
