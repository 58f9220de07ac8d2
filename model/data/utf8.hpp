// Is this UTF-8? Strict, as Unicode defines well-formed text: no overlong forms, no surrogates,
// nothing above U+10FFFF. Our own because training text is checked byte by byte at full disk speed
// and the first bad byte must be named by its offset; runs of ASCII are skipped 64 bytes at a time.
// Also recognises the encodings that people save by accident, so that they can be refused by name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::model::data {

inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

struct utf8_scan {
  std::size_t valid = 0;  // bytes before the first character that is not well-formed
  bool cut_off = false;   // what follows is a good beginning of a character; the text just ends
};

utf8_scan scan_utf8(std::string_view bytes);

// Why `rest`, which begins where scan_utf8 stopped, is not a character: "byte 0xE9 is followed by
// 0x20, which cannot continue a character".
std::string why_not_utf8(std::string_view rest);

// "UTF-16 (little-endian)" and the like if the beginning of a file looks so, else "". Decided by
// the byte-order mark, or by where the zero bytes stand: plain text in UTF-16 has them at every
// second byte. Zero bytes elsewhere are legal UTF-8 and not suspicious.
std::string_view other_encoding(std::string_view head);

}  // namespace troupe::model::data
