#include "comm/conversation.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <queue>
#include <random>

namespace troupe::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr generation plan{7};

conversation_settings settings_of(std::uint32_t self, std::uint32_t peer) {
  conversation_settings s;
  s.run_id = "run";
  s.self = member_id(self);
  s.peer = member_id(peer);
  s.self_life = incarnation(100 + self);
  s.peer_life = incarnation(100 + peer);
  return s;
}

bytes text(std::string_view words) {
  const auto view = std::as_bytes(std::span(words));
  return {view.begin(), view.end()};
}

// One linked pair at time 0.
struct pair_of_members {
  conversation a{settings_of(1, 2)}, b{settings_of(2, 1)};
  pair_of_members() {
    a.link_up({});
    b.link_up({});
  }
};

TEST(conversation, delivers_a_message_and_goes_quiet) {
  pair_of_members p;
  ASSERT_TRUE(p.a.send(plan, text("hello"), {}));
  EXPECT_FALSE(p.a.quiet());
  const auto frames = p.a.take_frames({});
  ASSERT_THAT(frames, SizeIs(1));
  const received got = p.b.receive(frames[0], milliseconds(1));
  ASSERT_THAT(got.messages, SizeIs(1));
  EXPECT_EQ(got.messages[0].payload, text("hello"));
  EXPECT_EQ(got.messages[0].plan, plan);
  // The acknowledgement waits a little for a message to ride on.
  EXPECT_THAT(p.b.take_frames(milliseconds(1)), IsEmpty());
  EXPECT_EQ(p.b.next_deadline(), milliseconds(21));
  const auto ack = p.b.take_frames(milliseconds(21));
  ASSERT_THAT(ack, SizeIs(1));
  EXPECT_THAT(p.a.receive(ack[0], milliseconds(22)).messages, IsEmpty());
  EXPECT_TRUE(p.a.quiet());
  EXPECT_TRUE(p.b.quiet());
  EXPECT_EQ(p.a.next_deadline(), std::nullopt);
  EXPECT_EQ(p.b.next_deadline(), std::nullopt);
}

TEST(conversation, lets_acknowledgements_ride_on_messages) {
  pair_of_members p;
  ASSERT_TRUE(p.a.send(plan, text("question"), {}));
  (void)p.b.receive(p.a.take_frames({}).at(0), {});
  ASSERT_TRUE(p.b.send(plan, text("answer"), {}));
  EXPECT_THAT(p.a.receive(p.b.take_frames({}).at(0), {}).messages, SizeIs(1));
  EXPECT_EQ(p.a.queued_bytes(), 0u);
  EXPECT_EQ(p.b.counters().acks_alone, 0u);
}

TEST(conversation, sends_again_with_growing_pauses_while_the_peer_is_silent) {
  pair_of_members p;
  ASSERT_TRUE(p.a.send(plan, text("hello"), {}));
  ASSERT_THAT(p.a.take_frames({}), SizeIs(1));
  std::vector<nanoseconds> pauses;
  nanoseconds last{};
  for (int round = 0; round < 6; ++round) {
    const nanoseconds due = *p.a.next_deadline();
    EXPECT_THAT(p.a.take_frames(due - nanoseconds(1)), IsEmpty());
    EXPECT_THAT(p.a.take_frames(due), SizeIs(1));
    pauses.push_back(due - last);
    last = due;
  }
  EXPECT_THAT(pauses,
              testing::ElementsAre(milliseconds(200), milliseconds(400), milliseconds(800),
                                   milliseconds(1600), milliseconds(3200), milliseconds(3200)));
  EXPECT_EQ(p.a.counters().resent, 6u);
}

TEST(conversation, repeats_only_a_piece_to_a_silent_peer) {
  pair_of_members p;
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(p.a.send(plan, bytes(100), {}));
  EXPECT_THAT(p.a.take_frames({}), SizeIs(500));
  EXPECT_THAT(p.a.take_frames(milliseconds(200)), SizeIs(64));
}

TEST(conversation, drops_a_duplicate_and_acknowledges_it_at_once) {
  pair_of_members p;
  ASSERT_TRUE(p.a.send(plan, text("once"), {}));
  const bytes frame = p.a.take_frames({}).at(0);
  EXPECT_THAT(p.b.receive(frame, {}).messages, SizeIs(1));
  const received again = p.b.receive(frame, {});
  EXPECT_THAT(again.messages, IsEmpty());
  EXPECT_EQ(again.refused, "");
  EXPECT_EQ(p.b.counters().duplicates, 1u);
  EXPECT_THAT(p.b.take_frames({}), SizeIs(1));
}

TEST(conversation, waits_for_the_missing_one_and_then_delivers_in_order) {
  pair_of_members p;
  for (const char* words : {"1", "2", "3"}) ASSERT_TRUE(p.a.send(plan, text(words), {}));
  const auto frames = p.a.take_frames({});
  EXPECT_THAT(p.b.receive(frames[2], {}).messages, IsEmpty());
  EXPECT_THAT(p.b.receive(frames[1], {}).messages, IsEmpty());
  const received got = p.b.receive(frames[0], {});
  ASSERT_THAT(got.messages, SizeIs(3));
  EXPECT_EQ(got.messages[0].payload, text("1"));
  EXPECT_EQ(got.messages[2].payload, text("3"));
  EXPECT_EQ(p.b.reordered_bytes(), 0u);
}

TEST(conversation, says_everything_unacknowledged_again_on_a_new_link) {
  pair_of_members p;
  ASSERT_TRUE(p.a.send(plan, text("heard"), {}));
  ASSERT_TRUE(p.a.send(plan, text("lost"), {}));
  const auto frames = p.a.take_frames({});
  (void)p.b.receive(frames[0], {});
  (void)p.a.receive(p.b.take_frames(milliseconds(20)).at(0), milliseconds(20));
  p.a.link_down();
  EXPECT_EQ(p.a.next_deadline(), std::nullopt);
  ASSERT_TRUE(p.a.send(plan, text("meanwhile"), milliseconds(30)));
  EXPECT_THAT(p.a.take_frames(milliseconds(999)), IsEmpty());
  p.a.link_up(milliseconds(1000));
  EXPECT_EQ(p.a.next_deadline(), milliseconds(1000));
  std::vector<message> got;
  for (const bytes& frame : p.a.take_frames(milliseconds(1000))) {
    for (message& m : p.b.receive(frame, milliseconds(1000)).messages) got.push_back(std::move(m));
  }
  ASSERT_THAT(got, SizeIs(2));
  EXPECT_EQ(got[0].payload, text("lost"));
  EXPECT_EQ(got[1].payload, text("meanwhile"));
}

TEST(conversation, refuses_what_belongs_elsewhere_and_says_why) {
  pair_of_members p;
  const auto refusal = [&](auto change) {
    envelope e{.run_id = "run",
               .plan = plan,
               .from = member_id(2),
               .to = member_id(1),
               .from_life = incarnation(102),
               .to_life = incarnation(101),
               .sequence = 1,
               .acknowledged = 0,
               .kind = frame_kind::data,
               .payload = {}};
    change(e);
    const received got = p.a.receive(encode(e), {});
    EXPECT_THAT(got.messages, IsEmpty());
    return got.refused;
  };
  EXPECT_THAT(refusal([](envelope& e) { e.run_id = "other"; }),
              HasSubstr("run \"other\" came to run \"run\""));
  EXPECT_THAT(refusal([](envelope& e) { e.from = member_id(3); }), HasSubstr("from member 3 to 1"));
  EXPECT_THAT(refusal([](envelope& e) { e.to = member_id(3); }), HasSubstr("from member 2 to 3"));
  EXPECT_THAT(refusal([](envelope& e) { e.from_life = incarnation(99); }),
              HasSubstr("life 99 came, known is its life 102"));
  EXPECT_THAT(refusal([](envelope& e) { e.to_life = incarnation(98); }),
              HasSubstr("life 98 came, this is its life 101"));
  EXPECT_THAT(refusal([](envelope& e) { e.acknowledged = 1; }),
              HasSubstr("acknowledges message 1, but only 0 were sent"));
  EXPECT_THAT(refusal([](envelope& e) { e.sequence = 0; }), HasSubstr("without a number"));
  EXPECT_THAT(refusal([](envelope& e) { e.kind = frame_kind::handshake; }), HasSubstr("handshake"));
  EXPECT_THAT(p.a.receive(text("garbage"), {}).refused, HasSubstr("no envelope"));
  EXPECT_EQ(p.a.counters().refused, 9u);
  EXPECT_EQ(p.a.counters().delivered, 0u);
}

TEST(conversation, refuses_to_queue_without_bound_and_recovers) {
  conversation_settings s = settings_of(1, 2);
  s.max_queued_bytes = 10000;
  conversation a(s), b(settings_of(2, 1));
  int queued = 0;
  status last = done{};
  while ((last = a.send(plan, bytes(900), {}))) ++queued;
  EXPECT_GT(queued, 5);
  EXPECT_LE(a.queued_bytes(), s.max_queued_bytes);
  EXPECT_THAT(last.failure().message, HasSubstr("wait for member 2"));
  a.link_up({});
  b.link_up({});
  for (const bytes& frame : a.take_frames({})) (void)b.receive(frame, {});
  (void)a.receive(b.take_frames(milliseconds(20)).at(0), {});
  EXPECT_EQ(a.queued_bytes(), 0u);
  EXPECT_TRUE(a.send(plan, bytes(900), {}));
}

TEST(conversation, keeps_to_the_window_in_both_directions) {
  conversation_settings s = settings_of(1, 2);
  s.max_unacknowledged_frames = 8;
  conversation a(s);
  a.link_up({});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(a.send(plan, bytes(10), {}));
  const auto frames = a.take_frames({});
  EXPECT_THAT(frames, SizeIs(8));

  conversation_settings small = settings_of(2, 1);
  small.max_unacknowledged_frames = 4;
  conversation b(small);
  b.link_up({});
  for (std::size_t i = 1; i < frames.size(); ++i) {
    EXPECT_THAT(b.receive(frames[i], {}).messages, IsEmpty());
  }
  EXPECT_EQ(b.counters().too_early, 4u);
  EXPECT_THAT(b.receive(frames[0], {}).messages, SizeIs(4));
}

TEST(conversation, does_not_let_a_full_window_wait_for_a_late_acknowledgement) {
  conversation_settings s = settings_of(2, 1);
  s.max_unacknowledged_frames = 16;
  conversation a(settings_of(1, 2)), b(s);
  a.link_up({});
  b.link_up({});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(a.send(plan, bytes(10), {}));
  const auto frames = a.take_frames({});
  (void)b.receive(frames[0], {});
  EXPECT_EQ(b.next_deadline(), s.ack_after);
  (void)b.receive(frames[1], {});
  EXPECT_EQ(b.next_deadline(), nanoseconds(0));
}

// --- a network that loses, repeats, reorders and delays -----------------------------------------

struct flying {
  nanoseconds at;
  std::uint64_t number;
  int to;
  bytes frame;
  bool operator<(const flying& other) const {
    return std::tie(other.at, other.number) < std::tie(at, number);  // the earliest is on top
  }
};

struct weather {
  double lose = 0, repeat = 0, damage = 0;
  milliseconds latest{50};
};

class rough_sea {
 public:
  rough_sea(std::uint64_t seed, weather w) : random_(seed), weather_(w) {
    conversation_settings first = settings_of(0, 1), second = settings_of(1, 0);
    first.max_unacknowledged_frames = second.max_unacknowledged_frames = 32;
    first.max_unacknowledged_bytes = second.max_unacknowledged_bytes = 20000;
    sides_.emplace_back(first);
    sides_.emplace_back(second);
    for (conversation& c : sides_) c.link_up({});
  }

  // Both sides say `count` messages at random times while links break now and then.
  void talk(int count) {
    std::uint64_t said[2] = {0, 0};
    while (said[0] < static_cast<std::uint64_t>(count) ||
           said[1] < static_cast<std::uint64_t>(count)) {
      for (int side = 0; side < 2; ++side) {
        if (said[side] == static_cast<std::uint64_t>(count) || chance(0.3)) continue;
        bytes payload(8 + random_() % 2000);
        std::memcpy(payload.data(), &said[side], 8);
        if (sides_[side].send(plan, std::move(payload), now_)) ++said[side];
      }
      if (chance(0.01)) break_link();
      pump();
      run_until(now_ + milliseconds(random_() % 20));
    }
  }

  // Calm weather from here on; true when both went quiet.
  bool calm_down() {
    weather_ = {};
    for (int i = 0; i < 10000; ++i) {
      pump();
      if (sky_.empty() && sides_[0].quiet() && sides_[1].quiet()) return true;
      run_until(now_ + milliseconds(10));
    }
    return false;
  }

  const std::vector<std::uint64_t>& heard(int side) const { return heard_[side]; }
  conversation& side(int i) { return sides_[i]; }
  std::size_t most_reordered() const { return most_reordered_; }

 private:
  bool chance(double p) { return static_cast<double>(random_() >> 11) * 0x1p-53 < p; }

  void break_link() {
    sky_ = {};
    for (conversation& c : sides_) c.link_down();
    for (conversation& c : sides_) c.link_up(now_);
  }

  void launch(int to, bytes frame) {
    if (chance(weather_.lose)) return;
    if (chance(weather_.repeat)) launch(to, frame);
    if (chance(weather_.damage)) frame[random_() % frame.size()] ^= std::byte{4};
    const nanoseconds flight = nanoseconds(weather_.latest) * (random_() % 1000) / 1000;
    sky_.push({now_ + flight, ++launched_, to, std::move(frame)});
  }

  void pump() {
    for (int side = 0; side < 2; ++side) {
      for (bytes& frame : sides_[side].take_frames(now_)) launch(1 - side, std::move(frame));
    }
  }

  void run_until(nanoseconds end) {
    for (;;) {
      nanoseconds next = end;
      if (!sky_.empty()) next = std::min(next, sky_.top().at);
      for (const conversation& c : sides_) next = std::min(next, c.next_deadline().value_or(end));
      now_ = std::max(now_, next);
      while (!sky_.empty() && sky_.top().at <= now_) {
        const flying f = sky_.top();
        sky_.pop();
        for (const message& m : sides_[f.to].receive(f.frame, now_).messages) {
          std::uint64_t number = 0;
          std::memcpy(&number, m.payload.data(), 8);
          heard_[f.to].push_back(number);
        }
        most_reordered_ = std::max(most_reordered_, sides_[f.to].reordered_bytes());
      }
      pump();
      if (now_ >= end) return;
    }
  }

  std::mt19937_64 random_;
  weather weather_;
  std::vector<conversation> sides_;
  std::priority_queue<flying> sky_;
  std::uint64_t launched_ = 0;
  nanoseconds now_{};
  std::vector<std::uint64_t> heard_[2];
  std::size_t most_reordered_ = 0;
};

TEST(conversation, delivers_all_once_and_in_order_over_any_network_and_goes_quiet) {
  constexpr int count = 300;
  std::vector<std::uint64_t> all(count);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  conversation_counters total;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto share = [&](double most) {
      return most * static_cast<double>(random() % 101) / 100;
    };
    rough_sea sea(seed, {.lose = share(0.4),
                         .repeat = share(0.3),
                         .damage = share(0.1),
                         .latest = milliseconds(1 + random() % 400)});
    sea.talk(count);
    ASSERT_TRUE(sea.calm_down());
    for (int side = 0; side < 2; ++side) {
      ASSERT_EQ(sea.heard(side), all);
      EXPECT_EQ(sea.side(side).queued_bytes(), 0u);
      EXPECT_EQ(sea.side(side).reordered_bytes(), 0u);
      total.resent += sea.side(side).counters().resent;
      total.duplicates += sea.side(side).counters().duplicates;
      total.refused += sea.side(side).counters().refused;
    }
    EXPECT_LE(sea.most_reordered(), 20000u);
  }
  // The network was rough indeed.
  EXPECT_GT(total.resent, 1000u);
  EXPECT_GT(total.duplicates, 1000u);
  EXPECT_GT(total.refused, 100u);
}

}  // namespace
}  // namespace troupe::comm
