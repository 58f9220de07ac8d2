// The protocol's messages as bytes, and back; nothing else. Cap'n Proto does the work: a reader
// that checks every pointer before it follows it, and no parsing of what is not looked at.
//
// What is encoded comes back the same, bit by bit, also numbers that are not finite. Whatever else
// arrives is an error or some message, never a crash and never much more memory than the bytes
// themselves need: each word of them can be read once, and a list must be as long as it says. A
// flipped bit in a number cannot be seen here.
//
// Not chosen: structs copied as they lie in memory (padding, trust), JSON (bits of numbers, speed).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "config/base/error.hpp"

namespace troupe::actors::wire {

std::vector<std::byte> encode(const protocol::message& what);
// The bytes need not be aligned; aligned to 8 they are read where they are. The error is bad_data.
result<protocol::message> decode(std::span<const std::byte> bytes);

// The reason of a skipped step is cut to this many bytes in headers, which have little room; the
// whole text stands in the message record_notice.
inline constexpr std::size_t max_header_reason_bytes = 200;

// At most 512 bytes, as the bulk lane wants it.
std::vector<std::byte> encode_header(const protocol::bulk_header& what);
result<protocol::bulk_header> decode_header(std::span<const std::byte> bytes);

}  // namespace troupe::actors::wire
