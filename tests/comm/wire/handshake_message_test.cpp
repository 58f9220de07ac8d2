#include "comm/wire/handshake_message.hpp"

#include <gmock/gmock.h>

#include <random>

namespace troupe::comm {
namespace {

using testing::HasSubstr;
using type = handshake_message::type;

facts somebody() {
  return {.run_id = "run-7",
          .build = "0.1.0 (abc)",
          .config_digest = "0123",
          .numerics_class = "cpu-chain",
          .slot = "worker-3",
          .wish = member_id(3),
          .life = incarnation(77),
          .address = "10.0.0.1:4711",
          .host = "node-1",
          .domain = "rack-ü",
          .kind = process_kind::joiner,
          .computes = true,
          .threads = 8,
          .memory_bytes = 1ull << 40,
          .speed = 123456789};
}

handshake_message message(type what) {
  handshake_message m;
  m.what = what;
  if (what == type::hello || what == type::challenge) {
    m.number.fill(std::byte{7});
    m.who = somebody();
  }
  if (what == type::challenge || what == type::answer) m.shown.fill(std::byte{9});
  if (what == type::refusal) m.reason = "no";
  return m;
}

constexpr type all_types[] = {type::hello, type::challenge, type::answer, type::welcome,
                              type::refusal};

TEST(handshake_message, is_the_same_after_the_wire) {
  for (const type what : all_types) {
    const auto read = decode_handshake(encode(message(what)));
    ASSERT_TRUE(read) << read.failure().message;
    EXPECT_EQ(*read, message(what));
  }
  handshake_message without_wish = message(type::hello);
  without_wish.who.wish.reset();
  EXPECT_EQ(*decode_handshake(encode(without_wish)), without_wish);
}

TEST(handshake_message, with_a_text_that_is_too_long_or_would_confuse_a_terminal_is_refused) {
  handshake_message m = message(type::hello);
  m.who.host.assign(max_fact_bytes, 'h');
  EXPECT_TRUE(decode_handshake(encode(m)));
  m.who.host += 'h';
  EXPECT_THAT(decode_handshake(encode(m)).failure().message, HasSubstr("the host has 513 bytes"));
  m.who.host = "a\x1b[2Jb";
  EXPECT_THAT(decode_handshake(encode(m)).failure().message,
              HasSubstr("the host contains a control character"));
  m = message(type::refusal);
  m.reason = "no\nyes";
  EXPECT_THAT(decode_handshake(encode(m)).failure().message, HasSubstr("control character"));
}

TEST(handshake_message, damaged_anywhere_never_costs_more_than_an_error) {
  std::mt19937_64 random(1);
  std::size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    auto bytes = encode(message(all_types[random() % 5]));
    for (std::size_t i = 1 + random() % 4; i > 0; --i) {
      const std::size_t reach = random() % 2 == 0 ? 40 : bytes.size();
      bytes[random() % std::min(reach, bytes.size())] = static_cast<std::byte>(random());
    }
    if (random() % 8 == 0) bytes.resize(random() % (bytes.size() + 1));
    const auto read = decode_handshake(bytes);
    if (!read) {
      ++refused;
      EXPECT_EQ(read.failure().code, exit_code::bad_data);
    } else {
      EXPECT_TRUE(fits(read->who));
      EXPECT_LE(read->reason.size(), max_reason_bytes);
    }
  }
  EXPECT_GT(refused, 1000u) << "the damage does not reach the structure";
}

TEST(handshake_message, made_of_random_bytes_never_costs_more_than_an_error) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::byte> bytes(random() % 300);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random() % (round % 2 == 0 ? 256 : 3));
    const auto read = decode_handshake(bytes);
    EXPECT_TRUE(!read || fits(read->who));
  }
}

}  // namespace
}  // namespace troupe::comm
