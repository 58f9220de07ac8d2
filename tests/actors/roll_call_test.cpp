#include "actors/roll_call.hpp"

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using testing::HasSubstr;

comm::facts somebody(std::uint32_t slot, std::uint64_t life = 1) {
  comm::facts f;
  f.slot = "worker-" + std::to_string(slot);
  f.wish = member_id(slot);
  f.life = incarnation(life);
  return f;
}

TEST(roll_call, is_complete_when_every_slot_has_somebody) {
  roll_call r(somebody(0), 3);
  EXPECT_FALSE(r.complete());
  EXPECT_EQ(r.note(somebody(2)), roll_call::entry::taken);
  EXPECT_EQ(r.note(somebody(2)), roll_call::entry::taken) << "the same process over another link";
  EXPECT_EQ(r.here(), 2u);
  EXPECT_EQ(r.note(somebody(1)), roll_call::entry::taken);
  EXPECT_TRUE(r.complete());
  EXPECT_EQ(r.candidates().size(), 3u);
  EXPECT_TRUE(roll_call(somebody(0), 1).complete());
}

TEST(roll_call, knows_the_newest_life_of_a_slot) {
  roll_call r(somebody(0), 2);
  EXPECT_EQ(r.note(somebody(1, 5)), roll_call::entry::taken);
  EXPECT_EQ(r.note(somebody(1, 4)), roll_call::entry::outlived);
  EXPECT_EQ(r.find(member_id(1))->life, incarnation(5));
  EXPECT_EQ(r.note(somebody(1, 6)), roll_call::entry::replaces);
  EXPECT_EQ(r.find(member_id(1))->life, incarnation(6));
  r.erase(member_id(1));
  EXPECT_EQ(r.find(member_id(1)), nullptr);
}

TEST(roll_call, names_the_slots_that_have_nobody) {
  roll_call r(somebody(1), 10);
  EXPECT_EQ(r.missing(), "0, 2-9");
  (void)r.note(somebody(4));
  EXPECT_EQ(r.missing(), "0, 2-3, 5-9");
  for (const std::uint32_t i : {0u, 3u, 6u, 7u, 8u}) (void)r.note(somebody(i));
  EXPECT_EQ(r.missing(), "2, 5, 9");
  const error why = r.too_few(std::chrono::seconds(20));
  EXPECT_EQ(why.code, exit_code::too_few);
  EXPECT_THAT(why.message, HasSubstr("only 7 of 10 members came within 20 s"));
  EXPECT_THAT(why.message, HasSubstr("slots 2, 5, 9"));
  for (const std::uint32_t i : {2u, 5u, 9u}) (void)r.note(somebody(i));
  EXPECT_EQ(r.missing(), "");
}

}  // namespace
}  // namespace troupe::actors
