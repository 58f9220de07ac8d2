#include "actors/peer.hpp"

#include <gmock/gmock.h>

#include "actors/loop.hpp"
#include "actors/messages.hpp"
#include "comm/simulated_transport.hpp"
#include "comm/wire/envelope.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A process with one peer, an actor in the worker's place, and a control handler that hands
// everything to the peer.
struct side final : comm::control_handler {
  side(comm::simulated_network& network, const clock_source& clock, std::uint32_t self)
      : way(network.add_process().transport),
        run(clock),
        mail(member_id(self)),
        around{way->control(), mail, clock, generation(3)} {
    mail.worker = run.system().spawn([this](caf::event_based_actor* me) -> caf::behavior {
      comm::conversation_settings talk;
      talk.run_id = "bard";
      talk.self = mail.self();
      talk.peer = member_id(1 - mail.self().value);
      talk.self_life = talk.peer_life = incarnation(1);
      peer = spawn_peer(me, around, talk);
      return {
          [this](const incoming& m) {
            told.push_back(std::get<protocol::farewell>(m.what).why + " of " +
                           std::to_string(m.from.value));
          },
          [this](const peer_quiet& m) { told.push_back("quiet " + std::to_string(m.who.value)); },
          [this](const peer_failed& m) { told.push_back("failed: " + m.why.message); },
      };
    });
    way->start(*this);
    run.run_ready();
  }
  ~side() override {
    caf::anon_send_exit(mail.worker, caf::exit_reason::kill);
    while (run.run_ready()) {
    }
  }
  side(const side&) = delete;
  side& operator=(const side&) = delete;

  void say(const std::string& what) { caf::anon_send(peer, outgoing{protocol::farewell{0, what}}); }
  void link_opened(comm::link_id l, bool) override {
    link = l;
    caf::anon_send(peer, peer_linked{l});
  }
  void frame_received(comm::link_id, comm::bytes_view frame) override {
    caf::anon_send(peer, peer_frame{{frame.begin(), frame.end()}});
  }
  void link_closed(comm::link_id, const std::string&) override {
    caf::anon_send(peer, peer_unlinked{});
  }

  std::unique_ptr<comm::transport> way;
  loop run;
  router mail;
  peer_surroundings around;
  caf::actor peer;
  std::optional<comm::link_id> link;
  std::vector<std::string> told;
};

struct peer_test : testing::Test {
  manual_clock clock;
  comm::simulated_network network{1};
  side a{network, clock, 0};
  side b{network, clock, 1};

  void dial() { (void)a.way->control().connect(b.way->control().local_address()); }
  void turn() {
    (void)network.take_ready();
    for (bool moved = true; moved;) {
      moved = false;
      for (side* s : {&a, &b}) moved = s->way->progress() || s->run.run_ready() || moved;
    }
  }
  // Whatever happens within this time, timers too.
  void pass(std::chrono::nanoseconds time) {
    const time_since_start until = clock.now() + time;
    for (;;) {
      turn();
      time_since_start next = until;
      for (const auto& due : {network.next_event(), a.run.next_timer(), b.run.next_timer()}) {
        if (due) next = std::min(next, std::max(*due, clock.now()));
      }
      clock.advance(next - clock.now());
      network.advance_to(next);
      if (next == until) break;
    }
    turn();
  }
};

TEST_F(peer_test, keeps_what_is_said_until_there_is_a_link) {
  a.say("one");
  a.say("two");
  pass(1s);
  EXPECT_THAT(b.told, IsEmpty());
  dial();
  pass(100ms);
  EXPECT_THAT(b.told, ElementsAre("one of 0", "two of 0"));
}

TEST_F(peer_test, says_again_over_a_new_link_what_was_lost_with_the_old_one_and_nothing_twice) {
  dial();
  pass(10ms);
  a.say("one");
  pass(100ms);
  a.say("two");
  turn();  // on its way
  network.reset_links(comm::process_id(0), comm::process_id(1));
  a.say("three");
  pass(1s);
  EXPECT_THAT(b.told, ElementsAre("one of 0"));
  dial();
  pass(1s);
  EXPECT_THAT(b.told, ElementsAre("one of 0", "two of 0", "three of 0"));
}

TEST_F(peer_test, says_when_everything_has_been_heard) {
  a.say("last");
  caf::anon_send(a.peer, peer_finish{});
  pass(1s);
  EXPECT_THAT(a.told, IsEmpty()) << "nobody has heard it";
  dial();
  pass(1s);
  EXPECT_THAT(b.told, ElementsAre("last of 0"));
  EXPECT_THAT(a.told, ElementsAre("quiet 1"));
}

TEST_F(peer_test, passes_over_frames_that_are_no_part_of_its_conversation) {
  dial();
  pass(10ms);
  a.way->control().send(*a.link, comm::bytes(100, std::byte{42}));
  a.say("one");
  pass(100ms);
  EXPECT_THAT(b.told, ElementsAre("one of 0"));
}

TEST_F(peer_test, reports_a_message_that_cannot_be_read) {
  dial();
  pass(10ms);
  comm::conversation_settings talk;
  talk.run_id = "bard";
  talk.self = member_id(0);
  talk.peer = member_id(1);
  talk.self_life = talk.peer_life = incarnation(1);
  comm::conversation liar(talk);
  liar.link_up(clock.now());
  ASSERT_TRUE(liar.send(generation(3), comm::bytes(16, std::byte{42}), clock.now()));
  for (comm::bytes& frame : liar.take_frames(clock.now())) {
    a.way->control().send(*a.link, std::move(frame));
  }
  pass(10ms);
  ASSERT_EQ(b.told.size(), 1u);
  EXPECT_THAT(b.told[0], HasSubstr("failed: a message of 16 bytes cannot be read"));
}

}  // namespace
}  // namespace troupe::actors
