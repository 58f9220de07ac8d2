#include "comm/message_faults.hpp"

#include <gmock/gmock.h>

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Ge;
using testing::IsEmpty;
using testing::Le;
using testing::SizeIs;

constexpr auto control = message_plane::control, bulk = message_plane::bulk;

message_rule rule(message_fault what, std::vector<member_id> to = {}) {
  message_rule r;
  r.id = 1;
  r.what = what;
  r.to = std::move(to);
  r.seed = 5;
  return r;
}
message_fate ask(message_faults& f, message_plane plane = control, member_id to = member_id(2),
                 std::string_view name = "vote") {
  return f.decide(plane, to, name, 100);
}
bool struck(const message_fate& f) {
  return f.cut || f.lost || f.again || f.replay || f.late.count() > 0 || !f.flipped.empty();
}

TEST(message_faults_test, without_a_rule_everything_passes) {
  message_faults f;
  EXPECT_TRUE(f.idle());
  EXPECT_FALSE(struck(ask(f)));
}

TEST(message_faults_test, every_kind_does_what_it_says) {
  for (const message_fault what :
       {message_fault::cut, message_fault::drop, message_fault::delay, message_fault::dup,
        message_fault::reorder, message_fault::replay, message_fault::corrupt}) {
    message_faults f;
    f.begin(rule(what));
    const message_fate fate = ask(f);
    EXPECT_EQ(fate.cut, what == message_fault::cut);
    EXPECT_EQ(fate.lost, what == message_fault::drop);
    EXPECT_EQ(fate.again, what == message_fault::dup);
    EXPECT_EQ(fate.replay, what == message_fault::replay);
    EXPECT_EQ(fate.overtaken, what == message_fault::reorder);
    EXPECT_EQ(fate.late > 0ns, what == message_fault::delay || what == message_fault::reorder);
    EXPECT_EQ(fate.flipped.empty(), what != message_fault::corrupt);
    EXPECT_EQ(f.struck(1), 1U);
  }
}

TEST(message_faults_test, only_the_named_members_are_concerned) {
  message_faults f;
  f.begin(rule(message_fault::cut, {member_id(3)}));
  EXPECT_FALSE(struck(ask(f)));
  EXPECT_TRUE(f.cuts(control, member_id(3)));
  EXPECT_TRUE(f.cuts(bulk, member_id(3)));
  EXPECT_FALSE(f.cuts(control, member_id(2)));
  EXPECT_FALSE(f.cuts(control, std::nullopt)) << "who has no name is nobody in particular";
}

TEST(message_faults_test, bulk_messages_are_not_lost_repeated_or_brought_back) {
  for (const message_fault what :
       {message_fault::drop, message_fault::dup, message_fault::replay}) {
    message_faults f;
    f.begin(rule(what));
    EXPECT_FALSE(is_possible(what, bulk));
    EXPECT_FALSE(struck(ask(f, bulk)));
    EXPECT_TRUE(struck(ask(f, control)));
  }
}

TEST(message_faults_test, a_rule_of_one_plane_or_one_message_leaves_the_others_alone) {
  message_faults f;
  message_rule r = rule(message_fault::corrupt);
  r.plane = bulk;
  r.message = "sum";
  f.begin(r);
  EXPECT_TRUE(f.asks_for_names());
  EXPECT_FALSE(struck(ask(f, control, member_id(2), "sum")));
  EXPECT_FALSE(struck(ask(f, bulk, member_id(2), "node")));
  EXPECT_TRUE(struck(ask(f, bulk, member_id(2), "sum")));
}

TEST(message_faults_test, a_number_of_messages_is_the_most_that_are_struck) {
  message_faults f;
  message_rule r = rule(message_fault::drop);
  r.messages = 2;
  f.begin(r);
  int lost = 0;
  for (int i = 0; i < 10; ++i) lost += ask(f).lost ? 1 : 0;
  EXPECT_EQ(lost, 2);
  EXPECT_EQ(f.struck(1), 2U);
}

TEST(message_faults_test, a_share_strikes_about_that_many_and_the_same_ones_again) {
  const auto run = [] {
    message_faults f;
    message_rule r = rule(message_fault::drop);
    r.share = 0.2;
    f.begin(r);
    std::vector<int> which;
    for (int i = 0; i < 1000; ++i) {
      if (ask(f).lost) which.push_back(i);
    }
    return which;
  };
  const auto first = run();
  EXPECT_THAT(first.size(), AllOf(Ge(150U), Le(250U)));
  EXPECT_EQ(first, run());
}

TEST(message_faults_test, a_delay_is_at_least_by_and_at_most_the_jitter_more) {
  message_faults f;
  message_rule r = rule(message_fault::delay);
  r.by = 10ms;
  r.jitter = 5ms;
  f.begin(r);
  for (int i = 0; i < 100; ++i) EXPECT_THAT(ask(f).late, AllOf(Ge(10ms), Le(15ms)));
}

TEST(message_faults_test, bits_that_change_lie_in_the_message) {
  message_faults f;
  message_rule r = rule(message_fault::corrupt);
  r.bits = 3;
  f.begin(r);
  for (int i = 0; i < 100; ++i) {
    for (const std::uint64_t bit : ask(f).flipped) EXPECT_LT(bit, 800U);
  }
  EXPECT_THAT(f.decide(control, {}, "", 0).flipped, IsEmpty());
}

TEST(message_faults_test, an_ended_rule_strikes_nobody_and_is_still_counted) {
  message_faults f;
  f.begin(rule(message_fault::drop));
  (void)ask(f);
  EXPECT_TRUE(f.end(1));
  EXPECT_FALSE(f.end(1));
  EXPECT_FALSE(struck(ask(f)));
  EXPECT_EQ(f.struck(1), 1U);
}

TEST(message_faults_test, a_replay_that_found_nothing_did_not_strike) {
  message_faults f;
  f.begin(rule(message_fault::replay));
  EXPECT_TRUE(ask(f).replay);
  f.nothing_to_replay(member_id(2));
  EXPECT_EQ(f.struck(1), 0U);
}

}  // namespace
}  // namespace troupe::comm
