#include "comm/wire/envelope.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <iostream>
#include <random>

#include "config/base/hash.hpp"

namespace troupe::comm {
namespace {

using frame = std::vector<std::byte>;
using testing::HasSubstr;

frame random_bytes(std::mt19937_64& random, std::size_t count) {
  frame made(count);
  for (std::byte& b : made) b = static_cast<std::byte>(random());
  return made;
}

envelope an_envelope(std::mt19937_64& random, std::size_t payload_bytes) {
  return {.run_id = "run-" + std::to_string(random() % 1000),
          .plan = generation(static_cast<std::uint32_t>(random())),
          .from = member_id(static_cast<std::uint32_t>(random())),
          .to = member_id(static_cast<std::uint32_t>(random())),
          .from_life = incarnation(random()),
          .to_life = incarnation(random()),
          .sequence = random(),
          .acknowledged = random(),
          .kind = static_cast<frame_kind>(random() % 3),
          .payload = random_bytes(random, payload_bytes)};
}

// What an attacker would do who knows the format: damage, then a checksum that fits.
void put_right_checksum(frame& bytes) {
  const std::uint64_t sum = hash64_bytes(std::span(bytes).subspan(8));
  std::memcpy(bytes.data(), &sum, sizeof sum);
}

std::string failure_of(std::span<const std::byte> bytes) {
  const result<envelope> read = decode(bytes);
  return read ? "accepted" : read.failure().message;
}

TEST(envelope, is_the_same_after_the_wire) {
  std::mt19937_64 random(1);
  for (const std::size_t size : {0, 1, 7, 8, 9, 200, 4096, 1 << 20}) {
    const envelope sent = an_envelope(random, size);
    const result<envelope> read = decode(encode(sent));
    ASSERT_TRUE(read) << read.failure().message;
    EXPECT_EQ(*read, sent);
  }
}

TEST(envelope, may_be_empty_or_have_the_longest_run_id) {
  envelope empty;
  EXPECT_EQ(*decode(encode(empty)), empty);
  empty.run_id.assign(max_run_id_bytes, 'r');
  EXPECT_EQ(*decode(encode(empty)), empty);
  EXPECT_LE(encode(empty).size(), max_envelope_bytes);
}

TEST(envelope, is_read_at_any_alignment) {
  std::mt19937_64 random(2);
  const envelope sent = an_envelope(random, 100);
  const frame bytes = encode(sent);
  for (std::size_t shift = 0; shift < 8; ++shift) {
    frame moved(shift);
    moved.insert(moved.end(), bytes.begin(), bytes.end());
    const result<envelope> read = decode(std::span(moved).subspan(shift));
    ASSERT_TRUE(read) << read.failure().message;
    EXPECT_EQ(*read, sent);
  }
}

TEST(envelope, takes_its_payload_from_elsewhere) {
  std::mt19937_64 random(3);
  envelope sent = an_envelope(random, 50);
  const frame payload = sent.payload;
  sent.payload.clear();
  EXPECT_EQ(decode(encode(sent, payload))->payload, payload);
}

TEST(envelope, with_any_flipped_bit_is_refused) {
  std::mt19937_64 random(4);
  const frame bytes = encode(an_envelope(random, 40));
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    frame damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_THAT(failure_of(damaged), HasSubstr("checksum")) << "bit " << bit;
  }
}

TEST(envelope, that_is_cut_short_or_too_long_is_refused) {
  std::mt19937_64 random(5);
  const frame bytes = encode(an_envelope(random, 40));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(failure_of(std::span(bytes).first(size)), "accepted") << size;
  }
  frame longer = bytes;
  longer.resize(bytes.size() + 8);
  EXPECT_NE(failure_of(longer), "accepted");
}

TEST(envelope, is_refused_when_its_kind_is_unknown_although_the_checksum_fits) {
  envelope odd;
  odd.kind = static_cast<frame_kind>(3);
  EXPECT_THAT(failure_of(encode(odd)), HasSubstr("3 is no kind of frame"));
}

TEST(envelope, damaged_under_a_checksum_that_fits_never_costs_more_than_an_error) {
  std::mt19937_64 random(6);
  std::size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    frame bytes = encode(an_envelope(random, random() % 64));
    const std::size_t changes = 1 + random() % 4;
    for (std::size_t i = 0; i < changes; ++i) {
      // Mostly in front, where sizes and pointers stand.
      const std::size_t reach = random() % 2 == 0 ? 32 : bytes.size() - 8;
      bytes[8 + random() % reach] = static_cast<std::byte>(random());
    }
    if (random() % 8 == 0) bytes.resize(24 + random() % (bytes.size() / 8) * 8);
    put_right_checksum(bytes);
    const result<envelope> read = decode(bytes);
    if (!read) {
      ++refused;
      EXPECT_EQ(read.failure().code, exit_code::bad_data);
    } else {
      EXPECT_LE(read->payload.size(), bytes.size());
      EXPECT_LE(read->run_id.size(), max_run_id_bytes);
    }
  }
  EXPECT_GT(refused, 1000u) << "the damage does not reach the structure";
}

TEST(envelope, made_of_random_bytes_is_refused) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 5000; ++round) {
    frame bytes = random_bytes(random, random() % 300);
    EXPECT_NE(failure_of(bytes), "accepted");
    if (bytes.size() < 16) continue;
    put_right_checksum(bytes);
    (void)decode(bytes);
  }
}

// Run with --gtest_also_run_disabled_tests; what it prints is nobody's promise.
TEST(envelope, DISABLED_cost_of_encoding_and_decoding) {
  std::mt19937_64 random(8);
  const envelope sent = an_envelope(random, 200);
  constexpr int rounds = 500000;
  std::size_t total = 0;
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; ++i) total += decode(encode(sent))->payload.size();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
  EXPECT_EQ(total, std::size_t{200} * rounds);
  std::cout << took.count() / rounds << " ns to encode and decode 200 bytes\n";
}

}  // namespace
}  // namespace troupe::comm
