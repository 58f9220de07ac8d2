// What the codec does with bytes that no member sent.
#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "actors/wire/codec.hpp"
#include "tests/actors/wire/some_messages.hpp"

namespace troupe::actors::wire {
namespace {

using testing::HasSubstr;

TEST(codec, says_what_was_wrong_with_the_bytes) {
  const auto why = [](const bytes& sent) {
    const auto r = decode(sent);
    if (r) return std::string("accepted");
    EXPECT_EQ(r.failure().code, exit_code::bad_data);
    return r.failure().message;
  };
  EXPECT_EQ(why({}),
            "a message of 0 bytes cannot be read: it is no whole number of words of 8 bytes; do "
            "all members run the same version of troupe?");
  EXPECT_THAT(why(bytes(13)), HasSubstr("13 bytes"));
  bytes longer = encode(protocol::recorded{4});
  longer.resize(longer.size() + 8);
  EXPECT_THAT(why(longer), HasSubstr("behind its end"));
  EXPECT_EQ(decode_header({}).failure().message.substr(0, 13), "a bulk header");
}

TEST(codec, takes_memory_full_of_zeros_for_no_message) {
  for (std::size_t words = 1; words < 10; ++words) {
    bytes zeros(8 * words);
    EXPECT_FALSE(decode(zeros)) << words;
    const auto rest = static_cast<std::uint32_t>(words - 1);  // a valid frame of zeros
    std::memcpy(zeros.data() + 4, &rest, 4);
    EXPECT_FALSE(decode(zeros)) << words;
    EXPECT_FALSE(decode_header(zeros)) << words;
  }
}

TEST(codec, refuses_frames_that_count_more_segments_or_words_than_there_are) {
  for (const std::uint32_t segments : {0u, 1u, 2u, 0x1ffu, 0x7fffffffu, 0xfffffffeu, 0xffffffffu}) {
    for (const std::uint32_t words : {0u, 1u, 9u, 0x1fffffffu, 0x80000000u, 0xffffffffu}) {
      for (std::size_t size = 8; size < 48; size += 8) {
        bytes sent(size, std::byte{0xff});
        std::memcpy(sent.data(), &segments, 4);
        std::memcpy(sent.data() + 4, &words, 4);
        EXPECT_FALSE(decode(sent)) << segments << " " << words << " " << size;
      }
    }
  }
}

TEST(codec, refuses_kinds_and_phases_that_do_not_exist) {
  bytes sent = encode(protocol::heartbeat{7, protocol::phase::saving});
  // Frame, pointer to the root; then the root's numbers in the order of the schema: the tag in the
  // lowest 16 bits of the first word, and whatever the compiler put beside it.
  const auto tag = static_cast<std::uint16_t>(message(protocol::heartbeat{}).index() + 1);
  std::uint16_t at_tag = 0;
  std::size_t tag_at = 0, phase_at = 0;
  for (std::size_t i = 16; i + 2 <= sent.size(); i += 2) {
    std::memcpy(&at_tag, sent.data() + i, 2);
    if (at_tag == tag) tag_at = i;
    if (at_tag == static_cast<std::uint16_t>(protocol::phase::saving)) phase_at = i;
  }
  ASSERT_NE(tag_at, 0u);
  ASSERT_NE(phase_at, 0u);
  const auto changed = [&](std::size_t at, std::uint16_t value) {
    bytes other = sent;
    std::memcpy(other.data() + at, &value, 2);
    const auto r = decode(other);
    return r ? std::string("accepted") : r.failure().message;
  };
  EXPECT_EQ(changed(phase_at, 5), "accepted");
  EXPECT_THAT(changed(phase_at, 6), HasSubstr("there is no phase 6"));
  EXPECT_THAT(changed(phase_at, 0xffff), HasSubstr("there is no phase 65535"));
  EXPECT_THAT(changed(tag_at, 0), HasSubstr("there is no kind 0"));
  const auto beyond = static_cast<std::uint16_t>(std::variant_size_v<protocol::message> + 1);
  EXPECT_THAT(changed(tag_at, beyond), HasSubstr("there is no kind"));
}

// A list of structs announced as one of bytes: each byte would become a value of many.
TEST(codec, refuses_a_list_with_more_elements_than_the_message_has_room_for) {
  protocol::save_share share;
  share.blocks.resize(1000);
  bytes sent = encode(share);
  bool found = false;
  for (std::size_t i = 16; i < sent.size() && !found; i += 8) {
    std::uint64_t pointer = 0;
    std::memcpy(&pointer, sent.data() + i, 8);
    const std::uint64_t words = pointer >> 35;
    if ((pointer & 3) != 1 || ((pointer >> 32) & 7) != 7 || words < 1000) continue;
    found = true;
    pointer = (pointer & 0xffffffff) | (2ull << 32) | ((words * 8) << 35);
    std::memcpy(sent.data() + i, &pointer, 8);
  }
  ASSERT_TRUE(found);
  const auto r = decode(sent);
  ASSERT_FALSE(r);
  EXPECT_THAT(r.failure().message, HasSubstr("more elements than fit"));
}

TEST(codec, refuses_every_beginning_of_a_message) {
  for (const message& one : messages_with(3)) {
    const bytes sent = encode(one);
    for (std::size_t n = 0; n < sent.size(); ++n)
      EXPECT_FALSE(decode(std::span(sent).first(n))) << one.index() << " cut to " << n;
  }
  for (const auto& one : some_headers()) {
    const bytes sent = encode_header(one);
    for (std::size_t n = 0; n < sent.size(); ++n)
      EXPECT_FALSE(decode_header(std::span(sent).first(n))) << one.index() << " cut to " << n;
  }
}

// What was accepted is a message like any other: it can be sent on.
void survive(std::span<const std::byte> input) {
  if (const auto r = decode(input)) {
    EXPECT_TRUE(decode(encode(*r)));
  }
  if (const auto r = decode_header(input)) {
    EXPECT_TRUE(decode_header(encode_header(*r)));
  }
}

TEST(codec, survives_flipped_bits_and_words) {
  std::mt19937_64 random(20261130);
  std::vector<bytes> valid;
  for (const message& one : messages_with(3)) valid.push_back(encode(one));
  for (const message& one : messages_with(100)) {  // more than one segment
    const bool long_one = std::holds_alternative<protocol::vote>(one) ||
                          std::holds_alternative<protocol::promise>(one);
    if (long_one) valid.push_back(encode(one));
  }
  for (const auto& one : some_headers()) valid.push_back(encode_header(one));
  for (const bytes& sent : valid) {
    for (std::size_t bit = 0; bit < 8 * std::min<std::size_t>(sent.size(), 200); ++bit) {
      bytes changed = sent;
      changed[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      survive(changed);
    }
    for (int i = 0; i < 300; ++i) {
      bytes changed = sent;
      for (std::uint64_t flips = 1 + random() % 4; flips > 0; --flips) {
        const std::size_t word = random() % (changed.size() / 8);
        const std::uint64_t value = random() >> random() % 64;
        std::memcpy(changed.data() + 8 * word, &value, 8);
      }
      survive(changed);
    }
  }
}

TEST(codec, survives_random_bytes) {
  std::mt19937_64 random(4711);
  for (int i = 0; i < 20'000; ++i) {
    bytes input(random() % 160);
    for (std::byte& b : input) b = static_cast<std::byte>(random() & (random() & 0xff));
    // Often with a good frame, so that what lies behind is looked at.
    if (input.size() >= 8 && i % 4 != 0) {
      input.resize(input.size() / 8 * 8);
      const std::uint64_t frame = (input.size() / 8 - 1) << 32;
      std::memcpy(input.data(), &frame, 8);
    }
    survive(input);
  }
}

}  // namespace
}  // namespace troupe::actors::wire
