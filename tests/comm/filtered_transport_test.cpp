// With nothing wrong it keeps what every transport promises; with something wrong it does that and
// no more.
#include "comm/filtered_transport.hpp"

#include <deque>

#include "comm/simulated_transport.hpp"
#include "comm/wire/envelope.hpp"
#include "comm/wire/handshake_message.hpp"
#include "tests/comm/simulated_world.hpp"
#include "tests/comm/transport_conformance.hpp"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class filtered_group final : public transport_group {
 public:
  explicit filtered_group(std::size_t count) : network_(1, {}) {
    for (std::size_t i = 0; i < count; ++i) {
      auto p = network_.add_process();
      ids_.push_back(p.id);
      all_.push_back(std::make_unique<filtered_transport>(
          std::move(p.transport), filter_settings{[this] { return clock_.now(); }}));
    }
  }
  transport& at(std::size_t index) override { return *all_[index]; }
  bool run_until(const std::function<bool()>& condition) override {
    while (!condition()) {
      if (!step()) return condition();
    }
    return true;
  }
  void settle() override {
    while (step()) {
    }
  }
  void lose(std::size_t index) override { network_.kill(ids_[index], 4ms); }
  address nobody() override { return {"127.0.0.1", 9}; }

 private:
  bool step() {
    const auto next = network_.next_event();
    if (!next) return false;
    network_.advance_to(*next);
    for (const process_id p : network_.take_ready()) all_[p.value]->progress();
    return true;
  }
  manual_clock clock_;
  simulated_network network_;
  std::vector<process_id> ids_;
  std::vector<std::unique_ptr<filtered_transport>> all_;
};

INSTANTIATE_TEST_SUITE_P(filtered, transport_conformance,
                         testing::Values(conformance_subject{
                             "idle",
                             [](std::size_t count) -> std::unique_ptr<transport_group> {
                               return std::make_unique<filtered_group>(count);
                             }}),
                         [](const auto& one) { return one.param.name; });

// Member 0 sends to member 1 over a network without any delay worth speaking of.
struct filtered_transport_test : testing::Test {
  manual_clock clock;
  simulated_network network{1, {}};
  process sender, receiver;
  filtered_transport* filter = nullptr;
  std::vector<time_since_start> wakes;
  link_id out{};

  filtered_transport_test() {
    auto first = network.add_process();
    auto filtered = std::make_unique<filtered_transport>(
        std::move(first.transport),
        filter_settings{[this] { return clock.now(); },
                        [](message_plane, bytes_view what) { return words(what); },
                        [this](time_since_start when) { wakes.push_back(when); }});
    filter = filtered.get();
    sender.way = std::move(filtered);
    receiver.way = network.add_process().transport;
    sender.way->start(sender);
    receiver.way->start(receiver);
    out = sender.way->control().connect(receiver.way->control().local_address());
    run();
    receiver.diary.clear();
  }
  void run() {
    do {
      while (const auto next = network.next_event()) {
        network.advance_to(*next);
        (void)network.take_ready();
        receiver.way->progress();
        sender.way->progress();
      }
    } while (sender.way->progress());
  }
  void pass(std::chrono::nanoseconds time) {
    clock.advance(time);
    run();
  }
  static bytes frame(std::string_view words, std::uint32_t plan = 1) {
    return encode(envelope{.run_id = "r",
                           .plan = generation(plan),
                           .from = member_id(0),
                           .to = member_id(1),
                           .from_life = {},
                           .to_life = {},
                           .sequence = 1,
                           .acknowledged = 0,
                           .kind = frame_kind::data,
                           .payload = text(words)});
  }
  void say(std::string_view words, std::uint32_t plan = 1) {
    sender.way->control().send(out, frame(words, plan));
    run();
  }
  void begin(message_fault what, std::uint64_t id = 1) {
    message_rule r;
    r.id = id;
    r.what = what;
    r.to = {member_id(1)};
    r.by = 10ms;
    filter->faults().begin(r);
  }
  // What has arrived, by its words; "?" where it cannot be read.
  std::vector<std::string> heard() {
    std::vector<std::string> all;
    for (const std::string& raw : receiver.diary) {
      const auto e = decode(std::as_bytes(std::span(raw.data(), raw.size())));
      all.push_back(e ? words(e->payload) : "?");
    }
    return all;
  }
};

TEST_F(filtered_transport_test, a_cut_holds_everything_and_what_was_held_comes_in_order) {
  say("a");
  begin(message_fault::cut);
  say("b");
  say("c");
  pass(10s);
  EXPECT_THAT(heard(), ElementsAre("a"));
  filter->faults().end(1);
  run();
  say("d");
  EXPECT_THAT(heard(), ElementsAre("a", "b", "c", "d"));
}

TEST_F(filtered_transport_test, a_cut_holds_one_direction_alone) {
  begin(message_fault::cut);
  ASSERT_THAT(receiver.links, SizeIs(1));
  receiver.way->control().send(receiver.links[0], text("back"));
  run();
  EXPECT_EQ(sender.diary.back(), "back");
}

TEST_F(filtered_transport_test, a_cut_of_another_member_holds_nothing) {
  message_rule r;
  r.id = 1;
  r.what = message_fault::cut;
  r.to = {member_id(4)};
  filter->faults().begin(r);
  say("a");
  EXPECT_THAT(heard(), ElementsAre("a"));
}

TEST_F(filtered_transport_test, a_cut_also_holds_a_new_link_to_the_same_place) {
  say("a");
  begin(message_fault::cut);
  out = sender.way->control().connect(receiver.way->control().local_address());
  sender.way->control().send(out, text("hello, in a language that says no name"));
  run();
  EXPECT_EQ(receiver.diary.back(), "accepted");
}

TEST_F(filtered_transport_test, a_cut_also_holds_the_answer_to_one_who_has_said_its_name) {
  begin(message_fault::cut);
  handshake_message hello;
  hello.who.wish = member_id(1);
  ASSERT_THAT(receiver.links, SizeIs(1));
  receiver.way->control().send(receiver.links[0], encode(envelope{.run_id = "r",
                                                                  .plan = {},
                                                                  .from = {},
                                                                  .to = {},
                                                                  .from_life = {},
                                                                  .to_life = {},
                                                                  .sequence = 0,
                                                                  .acknowledged = 0,
                                                                  .kind = frame_kind::handshake,
                                                                  .payload = encode(hello)}));
  run();
  sender.way->control().send(out, text("an answer"));
  run();
  EXPECT_THAT(receiver.diary, IsEmpty());
}

TEST_F(filtered_transport_test, what_is_late_makes_those_behind_it_wait) {
  begin(message_fault::delay);
  say("a");
  filter->faults().end(1);
  say("b");
  EXPECT_THAT(heard(), IsEmpty());
  EXPECT_THAT(wakes, testing::Contains(10ms));
  pass(9ms);
  EXPECT_THAT(heard(), IsEmpty());
  pass(1ms);
  EXPECT_THAT(heard(), ElementsAre("a", "b"));
}

TEST_F(filtered_transport_test, what_is_to_be_overtaken_is) {
  begin(message_fault::reorder);
  say("a");
  filter->faults().end(1);
  say("b");
  EXPECT_THAT(heard(), ElementsAre("b"));
  pass(10ms);
  EXPECT_THAT(heard(), ElementsAre("b", "a"));
}

TEST_F(filtered_transport_test, frames_are_lost_repeated_and_damaged) {
  begin(message_fault::drop);
  say("a");
  filter->faults().end(1);
  begin(message_fault::dup, 2);
  say("b");
  filter->faults().end(2);
  begin(message_fault::corrupt, 3);
  say("c");
  filter->faults().end(3);
  say("d");
  EXPECT_THAT(heard(), ElementsAre("b", "b", "?", "d"));
}

TEST_F(filtered_transport_test, only_what_an_older_plan_said_is_said_again) {
  say("old", 1);
  begin(message_fault::replay);
  say("still the same", 1);
  EXPECT_EQ(filter->faults().struck(1), 0U);
  say("new", 2);
  EXPECT_THAT(heard(), ElementsAre("old", "still the same", "old", "new"));
  EXPECT_EQ(filter->faults().struck(1), 1U);
}

TEST_F(filtered_transport_test, a_rule_may_be_for_one_kind_of_message) {
  message_rule r;
  r.id = 1;
  r.what = message_fault::drop;
  r.message = "vote";
  filter->faults().begin(r);
  say("vote");
  say("record");
  EXPECT_THAT(heard(), ElementsAre("record"));
}

TEST_F(filtered_transport_test, what_was_late_goes_out_before_the_link_is_closed) {
  begin(message_fault::delay);
  say("a");
  sender.way->control().close(out);
  run();
  ASSERT_THAT(receiver.diary, SizeIs(2));
  EXPECT_TRUE(receiver.diary[1].starts_with("closed"));
}

struct filtered_bulk_test : filtered_transport_test {
  std::unique_ptr<bulk_lane> from, to;
  bytes payload = text("numbers");

  filtered_bulk_test() {
    from = std::move(*sender.way->open_bulk(generation(1), sender));
    to = std::move(*receiver.way->open_bulk(generation(1), receiver));
    EXPECT_TRUE(from->connect(member_id(1), to->local_address()));
  }
  void send(const char* header, std::uint64_t token) {
    from->send(member_id(1), text(header), payload, token);
    run();
  }
};

TEST_F(filtered_bulk_test, a_cut_holds_messages_and_their_memory) {
  begin(message_fault::cut);
  send("a", 7);
  EXPECT_THAT(receiver.diary, IsEmpty());
  EXPECT_THAT(sender.tokens, IsEmpty());
  filter->faults().end(1);
  run();
  EXPECT_THAT(receiver.diary, ElementsAre("bulk a 7"));
  EXPECT_THAT(sender.tokens, ElementsAre(7));
}

TEST_F(filtered_bulk_test, a_changed_bit_arrives_and_the_senders_memory_is_as_it_was) {
  begin(message_fault::corrupt);
  send("a", 7);
  EXPECT_EQ(words(payload), "numbers");
  EXPECT_NE(words(receiver.arriving["a"]), "numbers");
  EXPECT_THAT(sender.tokens, ElementsAre(7));
}

TEST_F(filtered_bulk_test, a_late_message_may_be_overtaken) {
  begin(message_fault::delay);
  send("a", 1);
  filter->faults().end(1);
  send("b", 2);
  pass(10ms);
  EXPECT_THAT(receiver.diary, ElementsAre("bulk b 7", "bulk a 7"));
}

TEST_F(filtered_bulk_test, what_is_held_ends_with_its_lane) {
  begin(message_fault::cut);
  send("a", 7);
  from.reset();
  payload.clear();
  filter->faults().end(1);
  run();
  EXPECT_THAT(receiver.diary, IsEmpty());
}

}  // namespace
}  // namespace troupe::comm
