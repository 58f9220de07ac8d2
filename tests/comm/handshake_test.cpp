#include "comm/handshake.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "comm/wire/envelope.hpp"

namespace troupe::comm {
namespace {

using role = handshake::role;
using testing::AllOf;
using testing::HasSubstr;

facts somebody(const std::string& slot) {
  return {.run_id = "run-a",
          .build = "0.1.0 (abc)",
          .config_digest = "c0ffee",
          .numerics_class = "cpu-chain",
          .slot = slot,
          .wish = {},
          .life = incarnation(7),
          .address = "10.0.0.1:4711",
          .host = "node-1",
          .domain = "node-1",
          .kind = process_kind::member,
          .computes = true,
          .threads = 8,
          .memory_bytes = 1 << 30,
          .speed = 100};
}

secret secret_of(unsigned char fill) {
  std::array<std::byte, secret::size> all;
  all.fill(std::byte{fill});
  return secret(all);
}

nonce nonce_of(unsigned char fill) {
  nonce n;
  n.fill(std::byte{fill});
  return n;
}

struct meeting {
  facts joiner = somebody("worker-1"), host = somebody("worker-0");
  secret joiner_secret = secret_of(1), host_secret = secret_of(1);
  handshake::admission admit;

  // What both said at last, and all frames between them.
  handshake::step at_joiner, at_host;
  std::vector<bytes> frames;
  facts seen_by_joiner, seen_by_host;

  void take_place() {
    handshake c(role::connector, joiner, joiner_secret, nonce_of(10));
    handshake a(role::acceptor, host, host_secret, nonce_of(20), admit);
    std::optional<bytes> next = c.start();
    for (bool to_host = true; next; to_host = !to_host) {
      frames.push_back(*next);
      handshake::step& at = to_host ? at_host : at_joiner;
      at = (to_host ? a : c).receive(*next);
      next = at.reply;
    }
    seen_by_joiner = c.theirs();
    seen_by_host = a.theirs();
  }
};

TEST(handshake, tells_a_proven_process_why_it_is_not_taken_in) {
  meeting m;
  m.admit = [](const facts& theirs) { return "there is no room for " + theirs.slot; };
  m.take_place();
  EXPECT_FALSE(m.at_host.accepted);
  EXPECT_FALSE(m.at_joiner.accepted);
  EXPECT_EQ(m.at_joiner.refused, "the other side refused: there is no room for worker-1");
  EXPECT_THAT(m.at_host.refused, AllOf(HasSubstr("refused worker-1"), HasSubstr("no room")));
}

TEST(handshake, lets_both_sides_believe_each_other) {
  meeting m;
  m.joiner.kind = process_kind::joiner;
  m.joiner.wish = member_id(4);
  m.take_place();
  EXPECT_TRUE(m.at_joiner.accepted) << m.at_joiner.refused;
  EXPECT_TRUE(m.at_host.accepted) << m.at_host.refused;
  EXPECT_EQ(m.seen_by_joiner, m.host);
  EXPECT_EQ(m.seen_by_host, m.joiner);
  EXPECT_EQ(m.frames.size(), 4u);
  for (const bytes& frame : m.frames) EXPECT_LE(frame.size(), max_handshake_bytes);
}

TEST(handshake, never_sends_the_secret) {
  meeting m;
  std::mt19937_64 random(1);
  std::array<std::byte, secret::size> own;
  for (std::byte& b : own) b = static_cast<std::byte>(random());
  m.joiner_secret = m.host_secret = secret(own);
  m.take_place();
  ASSERT_TRUE(m.at_host.accepted);
  for (const bytes& frame : m.frames) {
    const auto piece = std::span(own).first(6);
    EXPECT_TRUE(std::ranges::search(frame, piece).empty());
  }
}

TEST(handshake, refuses_whom_refuse_names_and_says_both_values_to_both) {
  struct wrong {
    void (*change)(facts&);
    const char *mine, *theirs;
  };
  const wrong cases[] = {
      {[](facts& f) { f.run_id = "run-b"; }, "\"run-a\"", "\"run-b\""},
      {[](facts& f) { f.build = "0.2.0 (def)"; }, "0.1.0 (abc)", "0.2.0 (def)"},
      {[](facts& f) { f.config_digest = "decaf"; }, "c0ffee", "decaf"},
      {[](facts& f) { f.numerics_class = "cuda-90"; }, "cpu-chain", "cuda-90"},
  };
  for (const wrong& w : cases) {
    meeting m;
    w.change(m.joiner);
    m.joiner_secret = secret_of(2);  // another run has another secret: the facts speak first
    m.take_place();
    EXPECT_FALSE(m.at_host.accepted || m.at_joiner.accepted);
    EXPECT_THAT(m.at_host.refused, AllOf(HasSubstr("refused worker-1 (node-1, 10.0.0.1:4711)"),
                                         HasSubstr(w.mine), HasSubstr(w.theirs)));
    EXPECT_THAT(m.at_joiner.refused, AllOf(HasSubstr("the other side refused: this run"),
                                           HasSubstr(w.mine), HasSubstr(w.theirs)));
  }
}

TEST(handshake, refuses_another_secret) {
  meeting m;
  m.joiner_secret = secret_of(2);
  m.take_place();
  EXPECT_FALSE(m.at_host.accepted || m.at_joiner.accepted);
  EXPECT_THAT(m.at_joiner.refused, HasSubstr("secret"));
  EXPECT_THAT(m.at_host.refused, AllOf(HasSubstr("the other side refused"), HasSubstr("secret"),
                                       HasSubstr("worker-1")));
}

TEST(handshake, refuses_a_joiner_that_cannot_prove_the_secret_whatever_it_overlooks) {
  // A joiner without the secret that goes on although the acceptor's proof tells it nothing.
  // Nor is it asked whether there is room for it.
  const auto admit = [](const facts&) -> std::optional<std::string> { return "there is no room"; };
  handshake a(role::acceptor, somebody("worker-0"), secret_of(1), nonce_of(20), admit);
  handshake c(role::connector, somebody("worker-1"), secret_of(2), nonce_of(10));
  ASSERT_TRUE(a.receive(c.start()).reply);
  handshake_message guess;
  guess.what = handshake_message::type::answer;
  const auto wrapped = [](const handshake_message& m) {
    envelope e;
    e.kind = frame_kind::handshake;
    return encode(e, encode(m));
  };
  const handshake::step end = a.receive(wrapped(guess));
  EXPECT_FALSE(end.accepted);
  EXPECT_THAT(end.refused, HasSubstr("your secret is not that of run \"run-a\""));
  EXPECT_TRUE(end.reply);
  // And nothing helps afterwards.
  EXPECT_THAT(a.receive(wrapped(guess)).refused, HasSubstr("refused before"));
}

TEST(handshake, cannot_be_reflected_or_replayed) {
  // Two acceptors: what one proves is no answer for the other, nor for itself.
  meeting m;
  m.take_place();
  ASSERT_TRUE(m.at_host.accepted);
  const auto challenge = decode_handshake(decode(m.frames[1])->payload);
  handshake_message reflected;
  reflected.what = handshake_message::type::answer;
  reflected.shown = challenge->shown;
  envelope e;
  e.kind = frame_kind::handshake;
  handshake same(role::acceptor, m.host, m.host_secret, nonce_of(20));
  ASSERT_TRUE(same.receive(m.frames[0]).reply);
  EXPECT_THAT(same.receive(encode(e, encode(reflected))).refused, HasSubstr("secret"));
  // The whole conversation again, to an acceptor with a nonce of its own.
  handshake later(role::acceptor, m.host, m.host_secret, nonce_of(21));
  ASSERT_TRUE(later.receive(m.frames[0]).reply);
  EXPECT_THAT(later.receive(m.frames[2]).refused, HasSubstr("secret"));
}

TEST(handshake, notices_a_fact_that_was_changed_on_the_way) {
  meeting m;
  handshake c(role::connector, m.joiner, m.joiner_secret, nonce_of(10));
  handshake a(role::acceptor, m.host, m.host_secret, nonce_of(20));
  const auto tampered = [](const bytes& frame, auto change) {
    envelope e = *decode(frame);
    handshake_message inner = *decode_handshake(e.payload);
    change(inner.who);
    e.payload = encode(inner);
    return encode(e);
  };
  const auto challenge =
      a.receive(tampered(c.start(), [](facts& f) { f.address = "6.6.6.6:1"; })).reply;
  ASSERT_TRUE(challenge);
  EXPECT_THAT(c.receive(*challenge).refused, HasSubstr("secret"));
}

TEST(handshake, passes_over_what_came_twice_or_belongs_to_the_time_after) {
  const facts joiner = somebody("worker-1"), host = somebody("worker-0");
  handshake c(role::connector, joiner, secret_of(1), nonce_of(10));
  handshake a(role::acceptor, host, secret_of(1), nonce_of(20));
  const bytes hello = c.start();
  const bytes challenge = *a.receive(hello).reply;
  const handshake::step again = a.receive(hello);
  EXPECT_FALSE(again.reply || again.accepted);
  EXPECT_EQ(again.refused, "");
  const bytes answer = *c.receive(challenge).reply;
  EXPECT_FALSE(c.receive(challenge).reply);
  EXPECT_FALSE(c.receive(encode(envelope{})).accepted);
  const handshake::step welcome = a.receive(answer);
  EXPECT_TRUE(welcome.accepted);
  EXPECT_TRUE(c.receive(*welcome.reply).accepted);
  EXPECT_EQ(a.receive(answer).refused, "");
}

TEST(handshake, does_not_compare_what_does_not_matter) {
  const facts mine = somebody("worker-0");
  facts idle = somebody("watcher");
  idle.computes = false;
  idle.numerics_class = "";
  EXPECT_EQ(refuse(mine, idle), std::nullopt);
  EXPECT_EQ(refuse(idle, mine), std::nullopt);
  facts client = somebody("status");
  client.kind = process_kind::client;
  client.config_digest = client.numerics_class = "";
  EXPECT_EQ(refuse(mine, client), std::nullopt);
  client.build = "0.2.0 (def)";
  EXPECT_THAT(refuse(mine, client).value_or(""), HasSubstr("build"));
}

TEST(handshake, gives_up_on_a_frame_that_is_too_long) {
  handshake a(role::acceptor, somebody("worker-0"), secret_of(1), nonce_of(20));
  EXPECT_THAT(a.receive(bytes(max_handshake_bytes + 1)).refused, HasSubstr("at most 65536"));
}

TEST(handshake, is_never_passed_by_random_or_damaged_frames) {
  std::mt19937_64 random(3);
  meeting m;
  m.take_place();
  ASSERT_TRUE(m.at_host.accepted && m.at_joiner.accepted);
  std::size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    // Nonces of their own, as always; frames of the meeting above, damaged or made up.
    handshake a(role::acceptor, m.host, m.host_secret, nonce_of(30));
    handshake c(role::connector, m.joiner, m.joiner_secret, nonce_of(31));
    for (int i = 0; i < 4; ++i) {
      bytes frame = m.frames[random() % m.frames.size()];
      const auto damage = [&](bytes& what) {
        for (std::size_t n = random() % 4; n > 0; --n) {
          what[random() % what.size()] = static_cast<std::byte>(random());
        }
      };
      if (random() % 4 == 0) {
        damage(frame);
      } else if (random() % 8 == 0) {
        frame.resize(random() % 400);
        for (std::byte& b : frame) b = static_cast<std::byte>(random());
      } else {
        // Under a checksum that fits.
        envelope e = *decode(frame);
        damage(e.payload);
        frame = encode(e);
      }
      handshake& to = random() % 2 == 0 ? a : c;
      const handshake::step s = to.receive(frame);
      EXPECT_FALSE(s.accepted);
      refused += !s.refused.empty();
    }
  }
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace troupe::comm
