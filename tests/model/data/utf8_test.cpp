#include "model/data/utf8.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace troupe::model::data {
namespace {

using std::string_view_literals::operator""sv;

// Unicode's Table 3-7, "Well-Formed UTF-8 Byte Sequences", row by row.
struct row {
  std::vector<std::array<int, 2>> bytes;
};
const std::vector<row> well_formed = {
    {{{0x00, 0x7F}}},
    {{{0xC2, 0xDF}, {0x80, 0xBF}}},
    {{{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}}},
    {{{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {{{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}}},
    {{{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {{{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {{{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {{{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}}},
};

// The oracle: length of the character at `at` by the table, 0 if there is none.
std::size_t character_at(std::string_view text, std::size_t at) {
  for (const row& r : well_formed) {
    std::size_t i = 0;
    while (i < r.bytes.size() && at + i < text.size()) {
      const int byte = static_cast<unsigned char>(text[at + i]);
      if (byte < r.bytes[i][0] || byte > r.bytes[i][1]) break;
      ++i;
    }
    if (i == r.bytes.size()) return i;
  }
  return 0;
}

std::size_t valid_by_table(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t n = character_at(text, at);
    if (n == 0) break;
    at += n;
  }
  return at;
}

// The text could become valid if more bytes came.
bool cut_off_by_table(std::string_view text, std::size_t at) {
  for (const row& r : well_formed) {
    std::string longer(text);
    for (std::size_t i = text.size() - at; i < r.bytes.size(); ++i)
      longer += static_cast<char>(r.bytes[i][0]);
    if (longer.size() > text.size() && character_at(longer, at) == r.bytes.size()) return true;
  }
  return false;
}

std::string encoded(std::uint32_t c) {
  const auto byte = [](std::uint32_t b) { return static_cast<char>(b); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 63))};
  if (c < 0x10000) return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
  return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 63)), byte(0x80 | (c >> 6 & 63)),
          byte(0x80 | (c & 63))};
}

TEST(utf8, takes_every_character_and_no_surrogate) {
  for (std::uint32_t c = 0; c < 0x110000; ++c) {
    const std::string text = encoded(c);
    const bool surrogate = c >= 0xD800 && c < 0xE000;
    ASSERT_EQ(scan_utf8(text).valid, surrogate ? 0 : text.size()) << std::hex << c;
  }
  EXPECT_EQ(scan_utf8(encoded(0x110000)).valid, 0u);
}

TEST(utf8, agrees_with_the_standard_table_on_all_short_byte_strings) {
  std::string text(3, '\0');
  for (int a = 0x70; a < 256; ++a)
    for (int b = 0x70; b < 256; ++b)
      for (int c = 0x7E; c < 256; c += 1) {
        text[0] = static_cast<char>(a);
        text[1] = static_cast<char>(b);
        text[2] = static_cast<char>(c);
        ASSERT_EQ(scan_utf8(text).valid, valid_by_table(text)) << a << ' ' << b << ' ' << c;
      }
}

TEST(utf8, refuses_overlong_forms_by_name) {
  EXPECT_EQ(scan_utf8("a\xC0\xAF").valid, 1u);
  EXPECT_EQ(why_not_utf8("\xC0\xAF"), "byte 0xC0 cannot begin a character");
  EXPECT_EQ(why_not_utf8("\xE0\x80\xAF"), "bytes 0xE0 0x80 begin an overlong character");
  EXPECT_EQ(why_not_utf8("\xED\xA0\x80"), "bytes 0xED 0xA0 begin half of a surrogate pair");
  EXPECT_EQ(why_not_utf8("\xF4\x90\x80\x80"), "bytes 0xF4 0x90 begin a character above U+10FFFF");
  EXPECT_EQ(why_not_utf8("\xE9 "),
            "byte 0xE9 is followed by 0x20, which cannot continue a character");
  EXPECT_EQ(why_not_utf8("\xE2\x82"), "byte 0xE2 begins a character that is cut off");
}

TEST(utf8, names_the_first_bad_byte_after_random_mutations) {
  for (std::uint32_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::string text;
    while (text.size() < 40 + random() % 200) {
      const std::uint32_t limits[] = {0x80, 0x800, 0xD800, 0x110000};
      std::uint32_t c = random() % limits[random() % 8 < 5 ? 0 : random() % 4];
      text += encoded(c >= 0xD800 && c < 0xE000 ? 'x' : c);
    }
    ASSERT_EQ(scan_utf8(text).valid, text.size());
    for (int i = 0; i < 3; ++i) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1);
          break;
        case 2:
          text.insert(at, 1, static_cast<char>(random()));
          break;
      }
    }
    text.resize(text.size() - random() % 4);
    const utf8_scan scan = scan_utf8(text);
    ASSERT_EQ(scan.valid, valid_by_table(text));
    ASSERT_EQ(scan.cut_off, scan.valid < text.size() && cut_off_by_table(text, scan.valid));
  }
}

TEST(utf8, recognises_other_encodings_by_their_marks) {
  EXPECT_EQ(other_encoding("\xFF\xFEh\0i\0"sv), "UTF-16 (little-endian)");
  EXPECT_EQ(other_encoding("\xFE\xFF\0h\0i"sv), "UTF-16 (big-endian)");
  EXPECT_EQ(other_encoding("\xFF\xFE\0\0h\0\0\0"sv), "UTF-32 (little-endian)");
  EXPECT_EQ(other_encoding("\0\0\xFE\xFF\0\0\0h"sv), "UTF-32 (big-endian)");
}

TEST(utf8, recognises_other_encodings_by_their_zero_bytes) {
  EXPECT_EQ(other_encoding("h\0e\0l\0l\0"sv), "UTF-16 (little-endian)");
  EXPECT_EQ(other_encoding("\0h\0e\0l\0l"sv), "UTF-16 (big-endian)");
  EXPECT_EQ(other_encoding("h\0\0\0e\0\0\0"sv), "UTF-32 (little-endian)");
  EXPECT_EQ(other_encoding("\0\0\0h\0\0\0e"sv), "UTF-32 (big-endian)");
}

TEST(utf8, takes_text_with_some_zero_bytes_for_what_it_is) {
  EXPECT_EQ(other_encoding("one\0two\0three\0four\0five"sv), "");
  EXPECT_EQ(other_encoding("\0\0\0\0\0\0\0\0"sv), "");
  EXPECT_EQ(other_encoding("plain text"), "");
  EXPECT_EQ(other_encoding("\xEF\xBB\xBFtext"), "");
  EXPECT_EQ(other_encoding("ab"), "");
  EXPECT_EQ(other_encoding(""), "");
}

}  // namespace
}  // namespace troupe::model::data
