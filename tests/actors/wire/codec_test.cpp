#include "actors/wire/codec.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <set>

#include "tests/actors/wire/some_messages.hpp"

namespace troupe::actors::wire {
namespace {

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
    EXPECT_LE(encode_header(one).size(), 512u - 24u) << "a check stands behind it";
  }
}

TEST(codec, keeps_texts_that_are_no_utf8_or_hold_zeros) {
  const message odd = protocol::stop_wish{std::string("a\0b\xff\xc3", 5), true};
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
    protocol::promise promise;
    promise.records = {notice};
    const auto kept = std::get<protocol::promise>(there_and_back(promise)).records.at(0).record;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(kept.loss), bits);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(kept.grad_norm), bits);
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
    EXPECT_LE(sent.size(), 512u - 24u) << "a check stands behind it";
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

}  // namespace
}  // namespace troupe::actors::wire
