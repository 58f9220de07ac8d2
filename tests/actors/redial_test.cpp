#include "actors/redial.hpp"

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

const redial::limits limits{50ms, 3};

TEST(redial, the_higher_number_dials_at_once_and_the_lower_after_a_pause) {
  redial two(member_id(2), limits), five(member_id(5), limits);
  EXPECT_EQ(five.missing(member_id(2), 1s), 0ms);
  EXPECT_EQ(two.missing(member_id(5), 1s), 50ms);
}

TEST(redial, gives_a_member_up_whose_address_refuses_several_dials_in_a_row) {
  redial r(member_id(5), limits);
  r.missing(member_id(2), 1s);
  EXPECT_EQ(r.failed(member_id(2), false, 1s, 3s), 50ms);
  EXPECT_EQ(r.failed(member_id(2), false, 1s, 3s), 50ms);
  EXPECT_EQ(r.failed(member_id(2), false, 1s, 3s), redial::never);
}

TEST(redial, counts_refusals_anew_once_something_listened) {
  redial r(member_id(5), limits);
  r.missing(member_id(2), 1s);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(r.failed(member_id(2), false, 1s, 3s), 50ms);
    EXPECT_EQ(r.failed(member_id(2), true, 1s, 3s), 50ms);
  }
}

TEST(redial, gives_a_silent_member_up_when_its_time_is_over) {
  redial r(member_id(5), limits);
  r.missing(member_id(2), 1s);
  EXPECT_EQ(r.failed(member_id(2), true, 4s, 3s), 50ms);
  EXPECT_EQ(r.failed(member_id(2), true, 4s + 1ns, 3s), redial::never);
}

TEST(redial, forgets_an_absence_once_the_link_is_there) {
  redial r(member_id(5), limits);
  r.missing(member_id(2), 1s);
  r.linked(member_id(2));
  EXPECT_FALSE(r.is_missing(member_id(2)));
  r.missing(member_id(2), 9s);
  EXPECT_EQ(r.failed(member_id(2), true, 10s, 3s), 50ms);
}

TEST(redial, both_ends_keep_the_link_that_the_higher_number_dialled) {
  const redial two(member_id(2), limits), five(member_id(5), limits);
  // Dialled by 5 first, then by 2.
  EXPECT_FALSE(five.replaces(member_id(2), true, false));
  EXPECT_FALSE(two.replaces(member_id(5), false, true));
  // The other way round.
  EXPECT_TRUE(five.replaces(member_id(2), false, true));
  EXPECT_TRUE(two.replaces(member_id(5), true, false));
}

TEST(redial, a_newer_link_of_the_same_member_replaces_its_older_one) {
  const redial two(member_id(2), limits);
  EXPECT_TRUE(two.replaces(member_id(5), true, true));
  EXPECT_TRUE(two.replaces(member_id(5), false, false));
}

}  // namespace
}  // namespace troupe::actors
