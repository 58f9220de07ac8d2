#include "model/data/utf8.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>

namespace troupe::model::data {
namespace {

// What may follow a lead byte: how many bytes, and the range of the first of them. The narrowed
// ranges are what keeps out overlong forms (E0, F0), surrogates (ED) and values that are too large
// (F4).
struct lead_rule {
  int following;  // -1: cannot begin a character
  unsigned char low, high;
};

constexpr lead_rule rule_of(unsigned char lead) {
  if (lead < 0x80) return {0, 0, 0};
  if (lead < 0xC2) return {-1, 0, 0};
  if (lead < 0xE0) return {1, 0x80, 0xBF};
  if (lead == 0xE0) return {2, 0xA0, 0xBF};
  if (lead == 0xED) return {2, 0x80, 0x9F};
  if (lead < 0xF0) return {2, 0x80, 0xBF};
  if (lead == 0xF0) return {3, 0x90, 0xBF};
  if (lead < 0xF4) return {3, 0x80, 0xBF};
  if (lead == 0xF4) return {3, 0x80, 0x8F};
  return {-1, 0, 0};
}

bool is_ascii_block(const char* p) {
  unsigned char any = 0;
  for (int i = 0; i < 64; ++i) any |= static_cast<unsigned char>(p[i]);
  return any < 0x80;
}

}  // namespace

utf8_scan scan_utf8(std::string_view bytes) {
  const std::size_t n = bytes.size();
  std::size_t at = 0;
  while (at < n) {
    while (n - at >= 64 && is_ascii_block(bytes.data() + at)) at += 64;
    if (at == n) break;
    const lead_rule rule = rule_of(static_cast<unsigned char>(bytes[at]));
    if (rule.following < 0) return {at, false};
    for (int i = 1; i <= rule.following; ++i) {
      if (at + i == n) return {at, true};
      const auto byte = static_cast<unsigned char>(bytes[at + i]);
      const unsigned char low = i == 1 ? rule.low : 0x80, high = i == 1 ? rule.high : 0xBF;
      if (byte < low || byte > high) return {at, false};
    }
    at += 1 + rule.following;
  }
  return {n, false};
}

std::string why_not_utf8(std::string_view rest) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  const lead_rule rule = rule_of(byte(0));
  if (rule.following < 0) return fmt::format("byte 0x{:02X} cannot begin a character", byte(0));
  for (int i = 1; i <= rule.following; ++i) {
    if (static_cast<std::size_t>(i) == rest.size()) break;
    const unsigned char low = i == 1 ? rule.low : 0x80, high = i == 1 ? rule.high : 0xBF;
    if (byte(i) >= low && byte(i) <= high) continue;
    if (byte(i) >= 0x80 && byte(i) <= 0xBF) {
      return fmt::format("bytes 0x{:02X} 0x{:02X} begin {}", byte(0), byte(i),
                         byte(0) == 0xED   ? "half of a surrogate pair"
                         : byte(0) == 0xF4 ? "a character above U+10FFFF"
                                           : "an overlong character");
    }
    return fmt::format("byte 0x{:02X} is followed by 0x{:02X}, which cannot continue a character",
                       byte(i - 1), byte(i));
  }
  return fmt::format("byte 0x{:02X} begins a character that is cut off", byte(0));
}

std::string_view other_encoding(std::string_view head) {
  const auto begins = [&](std::string_view mark) { return head.substr(0, mark.size()) == mark; };
  if (begins(std::string_view("\xFF\xFE\0\0", 4))) return "UTF-32 (little-endian)";
  if (begins(std::string_view("\0\0\xFE\xFF", 4))) return "UTF-32 (big-endian)";
  if (begins("\xFF\xFE")) return "UTF-16 (little-endian)";
  if (begins("\xFE\xFF")) return "UTF-16 (big-endian)";

  const std::size_t groups = head.size() / 4;
  if (groups == 0) return "";
  std::array<std::size_t, 4> zeros{};
  for (std::size_t i = 0; i < groups * 4; ++i) zeros[i % 4] += head[i] == 0;
  const auto most = [&](int i) { return zeros[i] * 2 > groups; };
  const auto few = [&](int i) { return zeros[i] * 10 <= groups; };
  if (few(0) && most(1) && few(2) && most(3)) return "UTF-16 (little-endian)";
  if (most(0) && few(1) && most(2) && few(3)) return "UTF-16 (big-endian)";
  if (few(0) && most(2) && most(3)) return "UTF-32 (little-endian)";
  if (most(0) && most(1) && few(3)) return "UTF-32 (big-endian)";
  return "";
}

}  // namespace troupe::model::data
