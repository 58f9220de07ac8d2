#include <gmock/gmock.h>

#include "tests/comm/simulated_world.hpp"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(simulated_transport, connects_and_carries_frames_both_ways_in_order) {
  world w(2);
  w[1].answers = true;
  const link_id link = w.connect(0, 1);
  w.say(0, link, "one");
  w.say(0, link, "two");
  EXPECT_THAT(w[1].diary, IsEmpty()) << "a handler was called outside of progress()";
  w.run();
  EXPECT_THAT(w[1].diary, ElementsAre("accepted", "one", "two"));
  EXPECT_THAT(w[0].diary, ElementsAre("connected", "re: one", "re: two"));
  EXPECT_THAT(w[0].links, ElementsAre(link));
  EXPECT_EQ(w[0].way->sent().control_frames, 2u);
  EXPECT_EQ(w[0].way->sent().control_bytes, 6u);
  EXPECT_EQ(w.network.now(), 40us);
}

TEST(simulated_transport, keeps_the_order_of_a_link_under_jitter) {
  network_conditions c;
  c.jitter = 10ms;
  world w(2, 3, c);
  const link_id link = w.connect(0, 1);
  std::vector<std::string> expected = {"accepted"};
  for (int i = 0; i < 200; ++i) {
    expected.push_back(std::to_string(i));
    w.say(0, link, expected.back());
    w.run(w.network.now() + 1ms);
  }
  w.run();
  EXPECT_EQ(w[1].diary, expected);
}

TEST(simulated_transport, tells_why_nobody_was_reached) {
  world w(2);
  w[0].way->control().connect({"127.0.0.1", 9});
  w.run();
  EXPECT_THAT(w[0].diary, ElementsAre("closed: nobody listens at 127.0.0.1:9"));
  w.network.kill(w[1].id, 1ms);
  w.connect(0, 1);
  w.run();
  EXPECT_THAT(w[0].diary.back(), HasSubstr("127.0.0.1:10001 refused"));
}

TEST(simulated_transport, closing_delivers_what_was_sent_before_and_nothing_after) {
  world w(2);
  const link_id link = w.connect(0, 1);
  w.run();
  w.say(0, link, "last words");
  w.say(1, w[1].links[0], "too late");
  w[0].way->control().close(link);
  w.say(0, link, "vanishes");
  w.run();
  EXPECT_THAT(w[1].diary, ElementsAre("accepted", "last words",
                                      "closed: 127.0.0.1:10000 closed the connection"));
  EXPECT_THAT(w[0].diary, ElementsAre("connected"));
}

TEST(simulated_transport, closes_the_links_of_a_killed_process_after_what_it_had_sent) {
  world w(3);
  const link_id link = w.connect(0, 1);
  w.connect(2, 0);
  w.run();
  w.say(0, link, "sent before");
  w.network.kill(w[0].id, 3ms);
  w.say(1, w[1].links[0], "to the dead");
  w.run(w.network.now() + 2ms);
  EXPECT_THAT(w[1].diary, ElementsAre("accepted", "sent before"));
  w.run();
  EXPECT_THAT(w[1].diary, testing::Contains(HasSubstr("closed: 127.0.0.1:10000")));
  EXPECT_THAT(w[2].diary, testing::Contains(HasSubstr("closed: 127.0.0.1:10000")));
  EXPECT_THAT(w[0].diary, testing::UnorderedElementsAre("connected", "accepted"));
  EXPECT_FALSE(w[0].way->progress());
}

TEST(simulated_transport, a_process_whose_host_is_gone_is_never_noticed) {
  world w(2);
  const link_id link = w.connect(0, 1);
  w.run();
  w.network.kill(w[1].id, std::nullopt);
  w.say(0, link, "anybody there");
  w.run();
  EXPECT_THAT(w[0].diary, ElementsAre("connected"));
  w.network.set_connect_timeout(2s);
  const nanoseconds begun = w.network.now();
  w.connect(0, 1);
  w.run(begun + 2s - 1ns);
  EXPECT_THAT(w[0].diary, SizeIs(1));
  w.run(begun + 2s);
  EXPECT_THAT(w[0].diary.back(), HasSubstr("127.0.0.1:10001 gave no answer within 2000 ms"));
}

TEST(simulated_transport, ending_a_transport_closes_its_links) {
  world w(2);
  w.connect(0, 1);
  w.run();
  w[1].way.reset();
  w.run();
  EXPECT_THAT(w[0].diary, ElementsAre("connected", HasSubstr("closed: 127.0.0.1:10001")));
}

TEST(simulated_transport, a_stopped_process_gets_everything_when_it_continues) {
  world w(2);
  const link_id link = w.connect(0, 1);
  w.run();
  w.network.stop(w[1].id);
  w.say(0, link, "while stopped");
  w.run(w.network.now() + 10s);
  EXPECT_FALSE(w[1].way->progress());
  EXPECT_THAT(w[1].diary, ElementsAre("accepted"));
  EXPECT_EQ(w.network.next_event(), std::nullopt);
  w.network.continue_process(w[1].id);
  w.run();
  EXPECT_THAT(w[1].diary, ElementsAre("accepted", "while stopped"));
}

TEST(simulated_transport, what_a_stopped_process_still_sends_leaves_when_it_continues) {
  world w(2);
  const link_id link = w.connect(0, 1);
  w.run();
  w.say(0, link, "before");
  w.network.stop(w[0].id);
  w.say(0, link, "in the rest of the call");
  w.run(w.network.now() + 10s);
  EXPECT_THAT(w[1].diary, ElementsAre("accepted", "before"));
  w.network.continue_process(w[0].id);
  w.say(0, link, "after");
  w.run();
  EXPECT_THAT(w[1].diary, ElementsAre("accepted", "before", "in the rest of the call", "after"));
}

TEST(simulated_transport, a_cut_behind_what_was_sent_lets_that_arrive) {
  world w(2);
  const link_id link = w.connect(0, 1);
  w.run();
  w.say(0, link, "in flight");
  w.network.cut_behind(w[0].id, w[1].id);
  w.say(0, link, "held");
  w.run(w.network.now() + 1s);
  EXPECT_THAT(w[1].diary, ElementsAre("accepted", "in flight"));
  w.network.heal(w[0].id, w[1].id);
  w.run();
  EXPECT_THAT(w[1].diary, ElementsAre("accepted", "in flight", "held"));
}

TEST(simulated_transport, gives_up_connecting_to_a_stopped_process) {
  world w(2);
  w.network.stop(w[1].id);
  w.connect(0, 1);
  w.run();
  EXPECT_THAT(w[0].diary, ElementsAre(HasSubstr("no answer")));
  w.network.continue_process(w[1].id);
  w.run();
  EXPECT_THAT(w[1].diary, ElementsAre("accepted", HasSubstr("closed")));
  EXPECT_THAT(w[0].diary, SizeIs(1));
}

TEST(simulated_transport, a_cut_holds_one_direction_and_heals_in_order) {
  world w(2);
  const link_id link = w.connect(0, 1);
  w.run();
  w.say(0, link, "in flight");
  w.network.cut(w[0].id, w[1].id);
  w.say(0, link, "held");
  w.say(1, w[1].links[0], "back");
  w.run();
  EXPECT_THAT(w[1].diary, ElementsAre("accepted"));
  EXPECT_THAT(w[0].diary, ElementsAre("connected", "back"));
  w.say(0, link, "under way while it heals");
  w.network.heal(w[0].id, w[1].id);
  w.say(0, link, "after");
  w.run();
  EXPECT_THAT(w[1].diary,
              ElementsAre("accepted", "in flight", "held", "under way while it heals", "after"));
}

TEST(simulated_transport, a_cut_that_is_noticed_closes_both_ends_unless_it_heals_before) {
  world w(2);
  const link_id link = w.connect(0, 1);
  w.run();
  w.network.cut(w[1].id, w[0].id, 500ms);
  w.run(w.network.now() + 100ms);
  w.network.heal_all();
  w.run();
  EXPECT_THAT(w[0].diary, ElementsAre("connected"));
  w.network.cut(w[1].id, w[0].id, 500ms);
  w.say(1, w[1].links[0], "lost with the link");
  w.run();
  EXPECT_THAT(w[0].diary, ElementsAre("connected", "closed: no answer from 127.0.0.1:10001"));
  EXPECT_THAT(w[1].diary, ElementsAre("accepted", "closed: no answer from 127.0.0.1:10000"));
  w.network.heal_all();
  w.say(0, link, "too late");
  w.run();
  EXPECT_THAT(w[0].diary, SizeIs(2));
  EXPECT_THAT(w[1].diary, SizeIs(2));
}

TEST(simulated_transport, connecting_through_a_cut_gets_no_answer) {
  world w(2);
  w.network.cut(w[1].id, w[0].id);
  const link_id link = w.connect(0, 1);
  w.say(0, link, "arrives, as this direction works");
  w.run();
  EXPECT_THAT(w[0].diary, ElementsAre(HasSubstr("no answer within 5000 ms")));
  EXPECT_THAT(w[1].diary, ElementsAre("accepted", testing::_, HasSubstr("closed")));
}

TEST(simulated_transport, a_reset_loses_what_is_under_way_and_tells_both) {
  world w(2);
  const link_id link = w.connect(0, 1);
  w.run();
  w.say(0, link, "lost");
  w.network.reset_links(w[0].id, w[1].id);
  w.run();
  EXPECT_THAT(w[0].diary,
              ElementsAre("connected", "closed: the connection was reset by 127.0.0.1:10001"));
  EXPECT_THAT(w[1].diary,
              ElementsAre("accepted", "closed: the connection was reset by 127.0.0.1:10000"));
}

TEST(simulated_transport, a_link_that_ends_before_it_arrived_was_never_there) {
  world w(2);
  w.connect(0, 1);
  w.network.reset_links(w[0].id, w[1].id);
  w.run();
  EXPECT_THAT(w[0].diary, ElementsAre(HasSubstr("reset")));
  EXPECT_THAT(w[1].diary, IsEmpty());
}

TEST(simulated_transport, a_filter_decides_about_single_frames) {
  world w(2);
  const link_id link = w.connect(0, 1);
  w.network.set_filter([](process_id, process_id, bytes_view frame) {
    if (words(frame) == "a") return frame_fate::lose;
    if (words(frame) == "b") return frame_fate::repeat;
    return words(frame) == "c" ? frame_fate::late : frame_fate::pass;
  });
  for (const char* frame : {"a", "b", "c", "d"}) w.say(0, link, frame);
  w.run();
  EXPECT_THAT(w[1].diary, testing::UnorderedElementsAre("accepted", "b", "b", "c", "d"));
  EXPECT_EQ(w[1].diary[2], "d") << "the late one was not overtaken";
  EXPECT_EQ(w.network.counters().lost, 1u);
}

}  // namespace
}  // namespace troupe::comm
