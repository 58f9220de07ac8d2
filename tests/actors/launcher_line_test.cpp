#include "actors/launcher_line.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

TEST(launcher_line, orders_are_read_as_they_are_printed_and_nothing_else) {
  for (const launcher_order& order :
       {launcher_order(leave_order{"the world is scaled to 2 workers"}),
        launcher_order(leave_order{""}), launcher_order(world_note{"drain worker-3", 4, 3})}) {
    EXPECT_EQ(parse_order(print_order(order)), order);
  }
  for (const char* const text : {"", "leave", "note", "note 1", "note 1 2", "note x 2 y", "go"}) {
    EXPECT_FALSE(parse_order(text)) << text;
  }
}

TEST(launcher_line, orders_come_one_by_one_and_wait_for_who_listens_late) {
  const auto ends = open_launcher_line();
  ASSERT_TRUE(ends);
  ASSERT_TRUE(tell_worker(ends->ours, world_note{"scale 2", 4, 2}));
  ASSERT_TRUE(tell_worker(ends->ours, leave_order{"why"}));
  manual_clock clock{wall_time()};
  launcher_line line(ends->theirs, clock);
  EXPECT_EQ(line.next(), launcher_order(world_note{"scale 2", 4, 2}));
  EXPECT_EQ(line.next(), launcher_order(leave_order{"why"}));
  EXPECT_FALSE(line.next());
  ASSERT_TRUE(tell_worker(ends->ours, leave_order{"again"}));
  EXPECT_FALSE(line.next());  // it has just looked
  clock.advance(milliseconds(5));
  EXPECT_EQ(line.next(), launcher_order(leave_order{"again"}));
  close(ends->ours);
  clock.advance(milliseconds(5));
  EXPECT_FALSE(line.next());
  EXPECT_FALSE(tell_worker(ends->theirs, leave_order{"to nobody"}));
  close(ends->theirs);
}

TEST(launcher_line, whoever_has_no_launcher_hears_nothing) {
  launcher_line line(-1, real_clock());
  EXPECT_FALSE(line.next());
}

TEST(launcher_line, a_full_line_says_so_and_takes_orders_again_later) {
  const auto ends = open_launcher_line();
  ASSERT_TRUE(ends);
  int sent = 0;
  while (sent < 1000000 && tell_worker(ends->ours, leave_order{"why"})) ++sent;
  ASSERT_LT(sent, 1000000);
  launcher_line line(ends->theirs, real_clock());
  for (int i = 0; i < sent; ++i) ASSERT_TRUE(line.next()) << i;
  EXPECT_TRUE(tell_worker(ends->ours, leave_order{"why"}));
  close(ends->ours);
  close(ends->theirs);
}

}  // namespace
}  // namespace troupe::actors
