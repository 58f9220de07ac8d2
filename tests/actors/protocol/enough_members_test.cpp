#include "actors/protocol/enough_members.hpp"

#include <gmock/gmock.h>

namespace troupe::actors::protocol {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

plan of(int computing, int spares = 0) {
  plan p;
  for (int i = 0; i < computing + spares; ++i) {
    p.members.emplace_back();
    p.members.back().id = member_id(static_cast<std::uint32_t>(i));
    p.members.back().leaves = i < computing ? 1 : 0;
  }
  return p;
}

TEST(enough_members, with_as_many_as_are_needed_nobody_waits) {
  enough_members e(2, seconds(10));
  EXPECT_FALSE(e.waits());
  e.in_force(of(2), seconds(1));
  EXPECT_FALSE(e.waits());
  EXPECT_FALSE(e.waited());
}

TEST(enough_members, waits_from_plan_to_plan_and_tells_how_long_it_was) {
  enough_members e(3, seconds(10));
  e.in_force(of(1), seconds(1));
  EXPECT_TRUE(e.waits());
  EXPECT_EQ(e.left(seconds(4)), seconds(7));
  EXPECT_THAT(e.words(),
              HasSubstr("2 more members that compute: there is 1, and elastic.min_members is 3"));
  e.in_force(of(2), seconds(5));
  EXPECT_EQ(e.left(seconds(5)), seconds(6)) << "one of two has come, and the time goes on";
  EXPECT_THAT(e.words(), HasSubstr("1 more member that computes: there are 2"));
  e.in_force(of(3), seconds(8));
  EXPECT_FALSE(e.waits());
  EXPECT_EQ(e.waited(), seconds(7));
  e.in_force(of(3), seconds(9));
  EXPECT_FALSE(e.waited()) << "told once";
  e.in_force(of(2), seconds(100));
  EXPECT_EQ(e.left(seconds(100)), seconds(10));
}

TEST(enough_members, gives_up_in_the_end_in_words) {
  enough_members e(2, seconds(10));
  e.in_force(of(1), seconds(1));
  EXPECT_EQ(e.left(seconds(11)), seconds(0));
  EXPECT_EQ(e.left(seconds(50)), seconds(0));
  EXPECT_THAT(e.words_of_giving_up(), HasSubstr("10 s (elastic.wait_timeout_seconds)"));
  EXPECT_THAT(e.words_of_giving_up(), HasSubstr("1 more member"));
}

TEST(enough_members, members_that_do_not_compute_do_not_count) {
  enough_members e(2, seconds(10));
  e.in_force(of(1, 5), seconds(1));
  EXPECT_TRUE(e.waits());
}

}  // namespace
}  // namespace troupe::actors::protocol
