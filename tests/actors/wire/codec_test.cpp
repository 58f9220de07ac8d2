#include "actors/wire/codec.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <set>

namespace troupe::actors::wire {
namespace {

using protocol::message;
using testing::HasSubstr;
using bytes = std::vector<std::byte>;

// Other values in every field of everything that is made from it, so that two fields that changed
// places, or one that was forgotten, show.
struct numbers {
  std::uint64_t last = 0;
  std::uint64_t u64() { return 0x8000'0000'0000'0000 + ++last; }
  std::uint32_t u32() { return 0x8000'0000 + static_cast<std::uint32_t>(++last); }
  double real() { return static_cast<double>(++last) / 3; }
  float single() { return static_cast<float>(real()); }
  std::string text() { return "text " + std::to_string(++last); }
  hash128 hash() { return {u64(), u64()}; }
  protocol::block_id block() { return {u32(), u32()}; }
  protocol::leaf_loss loss() { return {u32(), real(), real()}; }
  protocol::record_notice notice() {
    const protocol::decision_record record = {.step = u64(),
                                              .updates = u64(),
                                              .skip = true,
                                              .why_skipped = text(),
                                              .scale = single(),
                                              .lr = single(),
                                              .loss = real(),
                                              .grad_norm = real(),
                                              .tokens = real()};
    return {record, false, true, u64()};
  }
};

// One message of every kind; `length` is that of its texts and lists.
std::vector<message> messages_with(std::size_t length) {
  numbers n;
  std::vector<message> all;
  const auto long_text = [&] {
    std::string text = n.text();
    text.resize(length, 'x');
    return text;
  };
  std::vector<protocol::leaf_loss> losses;
  for (std::size_t i = 0; i < length; ++i) losses.push_back(n.loss());
  all.emplace_back(protocol::plan_notice{long_text()});
  all.emplace_back(protocol::bulk_address{bytes(length, std::byte{0xc3})});
  all.emplace_back(protocol::ready{});
  all.emplace_back(protocol::go{});
  all.emplace_back(protocol::sum_held{n.u64(), n.block(), n.hash()});
  protocol::vote vote;
  vote.step = n.u64();
  for (std::size_t i = 0; i < length; ++i) vote.sums.push_back({n.block(), n.hash(), n.real()});
  vote.losses = losses;
  vote.facts = {n.real(), n.real(), n.real(), n.real(), n.real(),
                n.real(), n.u64(),  n.u64(),  n.u64(),  n.u64()};
  all.emplace_back(vote);
  protocol::record_notice notice = n.notice();
  notice.record.why_skipped = long_text();
  all.emplace_back(notice);
  notice.record.skip = false;
  notice.last = true;
  notice.validate = false;
  all.emplace_back(notice);
  all.emplace_back(protocol::recorded{n.u64()});
  all.emplace_back(protocol::validation_share{n.u64(), losses});
  all.emplace_back(protocol::save_request{n.u64(), long_text()});
  protocol::save_share share;
  share.step = n.u64();
  for (std::size_t i = 0; i < length; ++i)
    share.blocks.push_back({n.block(), n.hash(), n.hash(), n.hash(), n.hash(), n.hash()});
  share.failure = -74;
  share.message = long_text();
  share.finite = false;
  all.emplace_back(share);
  share.finite = true;
  all.emplace_back(share);
  for (int p = 0; p <= static_cast<int>(protocol::phase::ending); ++p)
    all.emplace_back(protocol::heartbeat{n.u64(), static_cast<protocol::phase>(p)});
  all.emplace_back(protocol::stop_wish{long_text()});
  all.emplace_back(protocol::farewell{std::numeric_limits<int>::min(), long_text()});
  return all;
}

std::vector<protocol::bulk_header> some_headers() {
  numbers n;
  return {protocol::node_header{n.u64(), {n.block(), 0xa5, {n.u32(), n.u32()}}},
          protocol::sum_header{n.u64(), n.block(), n.hash()},
          protocol::parameters_header{n.block(), n.notice()}, protocol::parameters_header{}};
}

template <class T>
std::size_t kinds(const std::vector<T>& all) {
  std::set<std::size_t> seen;
  for (const T& one : all) seen.insert(one.index());
  return seen.size();
}

message there_and_back(const message& what) { return decode(encode(what)).value(); }

TEST(codec, gives_every_message_back_with_every_field) {
  for (const std::size_t length : {0u, 1u, 7u, 8u, 9u, 100u, 20'000u}) {
    const std::vector<message> all = messages_with(length);
    ASSERT_EQ(kinds(all), std::variant_size_v<message>);
    for (const message& one : all)
      EXPECT_TRUE(there_and_back(one) == one) << one.index() << " with length " << length;
  }
}

TEST(codec, gives_every_header_back_with_every_field) {
  const auto all = some_headers();
  ASSERT_EQ(kinds(all), std::variant_size_v<protocol::bulk_header>);
  for (const auto& one : all) {
    EXPECT_TRUE(decode_header(encode_header(one)).value() == one) << one.index();
    EXPECT_LE(encode_header(one).size(), 512u);
  }
}

TEST(codec, keeps_texts_that_are_no_utf8_or_hold_zeros) {
  const message odd = protocol::stop_wish{std::string("a\0b\xff\xc3", 5)};
  EXPECT_TRUE(there_and_back(odd) == odd);
}

TEST(codec, keeps_the_bits_of_numbers_that_are_not_finite) {
  for (const std::uint64_t bits :
       {0x7ff0000000000000u, 0xfff0000000000000u, 0x7ff8000000000000u, 0xfff8dead'beef1234u,
        0x7ff0000000000001u, 0xfff4000000abcdefu, 0x8000000000000000u, std::uint64_t{1}}) {
    const double odd = std::bit_cast<double>(bits);
    protocol::vote vote;
    vote.sums = {{{}, {}, odd}};
    vote.losses = {{0, odd, odd}};
    vote.facts.wait = odd;
    const auto back = std::get<protocol::vote>(there_and_back(vote));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(back.sums.at(0).squares), bits);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(back.losses.at(0).loss_sum), bits);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(back.losses.at(0).tokens), bits);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(back.facts.wait), bits);
    protocol::record_notice notice;
    notice.record.loss = notice.record.grad_norm = odd;
    const auto record = std::get<protocol::record_notice>(there_and_back(notice)).record;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(record.loss), bits);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(record.grad_norm), bits);
  }
  for (const std::uint32_t bits :
       {0x7f800000u, 0xff800001u, 0x7fa12345u, 0xffc54321u, 0x80000000u, 0x00000001u}) {
    protocol::record_notice notice;
    notice.record.scale = notice.record.lr = std::bit_cast<float>(bits);
    const auto record = std::get<protocol::record_notice>(there_and_back(notice)).record;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(record.scale), bits);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(record.lr), bits);
  }
}

TEST(codec, cuts_a_long_reason_in_a_header_but_no_character_of_it) {
  protocol::parameters_header header;
  header.decided = numbers().notice();
  const auto reason_of = [&](const std::string& reason) {
    header.decided.record.why_skipped = reason;
    const bytes sent = encode_header(header);
    EXPECT_LE(sent.size(), 512u);
    const auto back = std::get<protocol::parameters_header>(decode_header(sent).value());
    EXPECT_EQ(back.decided.record.tokens, header.decided.record.tokens);
    EXPECT_EQ(back.decided.lines, header.decided.lines);
    return back.decided.record.why_skipped;
  };
  EXPECT_EQ(reason_of(std::string(200, 'a')), std::string(200, 'a'));
  EXPECT_EQ(reason_of(std::string(5000, 'a')), std::string(200, 'a'));
  EXPECT_EQ(reason_of(std::string(199, 'a') + "\u00e4"), std::string(199, 'a'));
  EXPECT_EQ(reason_of(std::string(198, 'a') + "\u00e4b"), std::string(198, 'a') + "\u00e4");
  EXPECT_EQ(reason_of(std::string(197, 'a') + "\U0001f600"), std::string(197, 'a'));
}

TEST(codec, reads_bytes_that_are_not_aligned) {
  for (const message& one : messages_with(5)) {
    const bytes sent = encode(one);
    for (std::size_t shift = 0; shift < 8; ++shift) {
      bytes moved(shift);
      moved.insert(moved.end(), sent.begin(), sent.end());
      EXPECT_TRUE(decode(std::span(moved).subspan(shift)).value() == one) << shift;
    }
  }
}

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
  EXPECT_THAT(changed(tag_at, 15), HasSubstr("there is no kind 15"));
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
  valid.push_back(encode(messages_with(100).at(5)));  // more than one segment
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
