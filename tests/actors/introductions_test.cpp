#include "actors/introductions.hpp"

#include <gmock/gmock.h>

#include "tests/comm/simulated_world.hpp"
#include "tests/support/gate_world.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using tests::facts_of;
using tests::gate_process;
using tests::gate_world;
using tests::secret_of;

TEST(introductions, make_two_members_of_a_run_known_to_each_other) {
  gate_world w;
  gate_process& a = w.add(0);
  gate_process& b = w.add(1);
  const comm::link_id link = a.gate.connect(w.where(b));
  w.pass(10ms);
  ASSERT_THAT(a.told.lines, ElementsAre("met worker-1"));
  ASSERT_THAT(b.told.lines, ElementsAre("met worker-0"));
  EXPECT_EQ(a.told.met[0].link, link);
  EXPECT_TRUE(a.told.met[0].we_connected);
  EXPECT_FALSE(b.told.met[0].we_connected);
  EXPECT_EQ(b.told.met[0].who, facts_of(0));
  a.keep_all();
  b.keep_all();
  a.way->control().send(link, comm::text("hello"));
  w.pass(10ms);
  EXPECT_THAT(b.heard.lines, ElementsAre("hello"));
  EXPECT_EQ(a.gate.refused() + b.gate.refused(), 0u);
}

TEST(introductions, say_when_a_member_was_last_heard) {
  gate_world w;
  gate_process& a = w.add(0);
  gate_process& b = w.add(1);
  const comm::link_id link = a.gate.connect(w.where(b));
  w.pass(10ms);
  EXPECT_EQ(b.gate.last_heard(member_id(0)), std::nullopt);
  a.keep_all();
  b.keep_all();
  EXPECT_EQ(b.gate.last_heard(member_id(0)), w.clock.now());
  w.pass(1s);
  const time_since_start sent = w.clock.now();
  w.clock.jump_wall(-24h);  // says nothing
  a.way->control().send(link, comm::text("sign"));
  w.pass(1s);
  EXPECT_GE(*b.gate.last_heard(member_id(0)), sent);
  EXPECT_LT(*b.gate.last_heard(member_id(0)), sent + 1ms);
}

TEST(introductions, lose_no_frame_that_comes_before_the_link_is_kept) {
  gate_world w;
  gate_process& a = w.add(0);
  gate_process& b = w.add(1);
  const comm::link_id link = a.gate.connect(w.where(b));
  b.asleep = true;
  w.pass(10ms);
  ASSERT_THAT(a.told.lines, ElementsAre("met worker-1"));
  a.keep_all();
  a.way->control().send(link, comm::text("one"));
  a.way->control().send(link, comm::text("two"));
  w.pass(10ms);
  b.asleep = false;
  w.pass(1ms);
  EXPECT_THAT(b.heard.lines, IsEmpty());
  b.keep_all();
  a.way->control().send(link, comm::text("three"));
  w.pass(10ms);
  EXPECT_THAT(b.heard.lines, ElementsAre("one", "two", "three"));
}

TEST(introductions, do_not_keep_a_link_that_has_ended_already) {
  gate_world w;
  gate_process& a = w.add(0);
  gate_process& b = w.add(1);
  (void)a.gate.connect(w.where(b));
  b.asleep = true;
  w.pass(10ms);
  a.keep_all();
  a.gate.close_all();
  w.pass(10ms);
  b.asleep = false;
  w.pass(1ms);
  ASSERT_THAT(b.told.lines, ElementsAre("met worker-0"));
  EXPECT_FALSE(b.gate.keep(b.told.met[0].link, member_id(0), b.peer));
  EXPECT_EQ(b.gate.last_heard(member_id(0)), std::nullopt);
}

TEST(introductions, tell_of_a_kept_link_that_ends) {
  gate_world w;
  gate_process& a = w.add(0);
  gate_process& b = w.add(1);
  (void)a.gate.connect(w.where(b));
  w.pass(10ms);
  a.keep_all();
  b.keep_all();
  w.network.reset_links(a.id, b.id);
  w.pass(10ms);
  EXPECT_THAT(a.told.lines, Contains(StartsWith("lost 1: ")));
  EXPECT_THAT(b.told.lines, Contains(StartsWith("lost 0: ")));
}

TEST(introductions, give_up_a_stranger_that_says_nothing_after_their_patience_and_not_before) {
  gate_world w;
  gate_process& a = w.add(0);
  comm::simulated_network::process raw = w.network.add_process();
  comm::process stranger;
  raw.transport->start(stranger);
  w.strangers.push_back(raw.transport.get());
  (void)raw.transport->control().connect(w.where(a));
  w.pass(4900ms);
  a.gate.give_up_silent();
  w.pass(10ms);
  EXPECT_THAT(stranger.diary, ElementsAre("connected"));
  w.pass(200ms);
  a.gate.give_up_silent();
  w.pass(10ms);
  EXPECT_THAT(stranger.diary, ElementsAre("connected", StartsWith("closed: ")));
  EXPECT_THAT(a.told.lines, IsEmpty()) << "a port scan is no event";
  EXPECT_EQ(a.gate.refused(), 1u);
}

TEST(introductions, say_why_a_link_that_was_dialled_came_to_nothing) {
  gate_world w;
  gate_process& a = w.add(0);
  comm::simulated_network::process raw = w.network.add_process();
  comm::process mute;
  raw.transport->start(mute);
  w.strangers.push_back(raw.transport.get());
  (void)a.gate.connect(raw.transport->control().local_address());
  w.pass(6s);
  a.gate.give_up_silent();
  w.pass(10ms);
  ASSERT_THAT(a.told.lines, ElementsAre(AllOf(StartsWith("not met: "), HasSubstr("5000 ms"),
                                              HasSubstr("comm.handshake_seconds"))));
  (void)a.gate.connect({"127.0.0.1", 1});
  w.pass(60s);
  a.gate.give_up_silent();
  w.pass(10ms);
  EXPECT_THAT(a.told.lines.back(), AllOf(StartsWith("not met: "), HasSubstr("127.0.0.1:1")));
}

TEST(introductions, turn_garbage_away) {
  gate_world w;
  gate_process& a = w.add(0);
  comm::simulated_network::process raw = w.network.add_process();
  comm::process stranger;
  raw.transport->start(stranger);
  w.strangers.push_back(raw.transport.get());
  for (const comm::bytes& garbage :
       {comm::text("GET / HTTP/1.1\r\n\r\n"), comm::bytes(), comm::bytes(1u << 20)}) {
    const comm::link_id link = raw.transport->control().connect(w.where(a));
    w.pass(1ms);
    raw.transport->control().send(link, garbage);
    w.pass(10ms);
    EXPECT_THAT(stranger.diary.back(), StartsWith("closed: "));
    EXPECT_THAT(a.told.lines.back(), StartsWith("visitor: "));
  }
  EXPECT_EQ(a.told.lines.size(), 3u);
  EXPECT_EQ(a.gate.refused(), 3u);
}

// Both sides learn why, with what either of them has.
struct misfit {
  std::string name;
  std::function<void(introductions_settings&)> make;
  std::vector<std::string> words;
};
class a_misfit : public testing::TestWithParam<misfit> {};
TEST_P(a_misfit, is_refused_and_both_sides_are_told_why) {
  for (const bool it_dials : {true, false}) {
    gate_world w;
    gate_process& member = w.add(0);
    introductions_settings other{.me = facts_of(1), .key = secret_of(7)};
    GetParam().make(other);
    gate_process& stranger = w.add(other);
    if (it_dials) {
      (void)stranger.gate.connect(w.where(member));
    } else {
      (void)member.gate.connect(w.where(stranger));
    }
    w.pass(10ms);
    gate_process& dialled = it_dials ? member : stranger;
    gate_process& dialling = it_dials ? stranger : member;
    ASSERT_EQ(dialling.told.lines.size(), 1u);
    ASSERT_EQ(dialled.told.lines.size(), 1u);
    EXPECT_THAT(dialling.told.lines[0], StartsWith("refused: "));
    EXPECT_THAT(dialled.told.lines[0], StartsWith("visitor: "));
    for (const std::string& word : GetParam().words) {
      EXPECT_THAT(dialling.told.lines[0], HasSubstr(word));
      EXPECT_THAT(dialled.told.lines[0], HasSubstr(word));
    }
    EXPECT_THAT(member.told.met, IsEmpty());
    EXPECT_THAT(stranger.told.met, IsEmpty());
  }
}
INSTANTIATE_TEST_SUITE_P(
    introductions, a_misfit,
    testing::Values(
        misfit{"run",
               [](introductions_settings& s) { s.me.run_id = "lear"; },
               {"\"bard\"", "\"lear\""}},
        misfit{"run_and_secret",
               [](introductions_settings& s) {
                 s.me.run_id = "lear";
                 s.key = secret_of(8);
               },
               {"\"bard\"", "\"lear\""}},
        misfit{"build", [](introductions_settings& s) { s.me.build = "2.0"; }, {"1.0", "2.0"}},
        misfit{"config",
               [](introductions_settings& s) { s.me.config_digest = "bbbb"; },
               {"aaaa", "bbbb"}},
        misfit{"numerics",
               [](introductions_settings& s) { s.me.numerics_class = "other"; },
               {"toy", "other"}},
        misfit{"secret",
               [](introductions_settings& s) { s.key = secret_of(8); },
               {"secret", "\"bard\""}}),
    [](const auto& tested) { return tested.param.name; });

TEST(introductions, keep_a_flood_of_strangers_within_bounds_and_members_at_work) {
  gate_world w;
  introductions_settings settings{.me = facts_of(0), .key = secret_of(7)};
  settings.most_strangers = 20;
  gate_process& a = w.add(settings);
  gate_process& b = w.add(1);
  const comm::link_id link = b.gate.connect(w.where(a));
  w.pass(10ms);
  a.keep_all();
  b.keep_all();
  comm::simulated_network::process raw = w.network.add_process();
  comm::process stranger;
  raw.transport->start(stranger);
  w.strangers.push_back(raw.transport.get());
  for (int i = 0; i < 100; ++i) (void)raw.transport->control().connect(w.where(a));
  w.pass(10ms);
  EXPECT_EQ(std::ranges::count_if(stranger.diary,
                                  [](const std::string& l) { return l.starts_with("closed"); }),
            80);
  b.way->control().send(link, comm::text("still here"));
  w.pass(10ms);
  EXPECT_THAT(a.heard.lines, ElementsAre("still here"));
  // This member's own links have their place whoever else is there.
  gate_process& c = w.add(2);
  (void)a.gate.connect(w.where(c));
  w.pass(10ms);
  EXPECT_THAT(a.told.lines, ElementsAre("met worker-1", "met worker-2"));
  // When the silent ones are given up, others may come.
  w.pass(6s);
  a.gate.give_up_silent();
  gate_process& d = w.add(3);
  (void)d.gate.connect(w.where(a));
  w.pass(10ms);
  EXPECT_THAT(a.told.lines, Contains("met worker-3"));
}

TEST(introductions, close_every_link_at_the_end) {
  gate_world w;
  gate_process& a = w.add(0);
  gate_process& b = w.add(1);
  gate_process& c = w.add(2);
  (void)a.gate.connect(w.where(b));
  (void)a.gate.connect(w.where(c));
  w.pass(10ms);
  b.keep_all();
  c.keep_all();
  (void)a.gate.keep(a.told.met[0].link, *a.told.met[0].who.wish,
                    a.peer);  // the other is not kept yet
  a.gate.close_all();
  w.pass(10ms);
  EXPECT_THAT(b.told.lines.back(), StartsWith("lost 0: "));
  EXPECT_THAT(c.told.lines.back(), StartsWith("lost 0: "));
  EXPECT_EQ(a.told.lines.size(), 2u) << "who closes is not told that it closed";
  (void)b.gate.connect(w.where(a));
  w.pass(10ms);
  EXPECT_THAT(b.told.lines.back(), StartsWith("not met: ")) << "nobody is let in any more";
}

}  // namespace
}  // namespace troupe::actors
