// The envelope around everything that the control lane carries: whose run, which plan, from which
// life of which member to which, and where it stands in the order of the two. The payload is
// opaque here.
//
// On the wire: eight bytes of checksum (xxh3 of all that follows, little-endian), then a flat Cap'n
// Proto message (envelope.capnp). The checksum stands outside because a flipped bit may hit
// anything, also the structure that a reader would follow to find the checksum. It is no proof
// against malice: what passes it is still read under Cap'n Proto's bounds, and decode() answers
// garbage with an error and never needs more memory than the frame has. Packed encoding was not
// chosen: payloads are mostly numbers that it does not shorten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/ids.hpp"

namespace troupe::comm {

enum class frame_kind : std::uint16_t { data, ack_only, handshake };

struct envelope {
  std::string run_id;  // at most max_run_id_bytes
  generation plan;
  member_id from, to;
  incarnation from_life, to_life;
  std::uint64_t sequence = 0;      // from 1; 0: outside of the order, not acknowledged
  std::uint64_t acknowledged = 0;  // everything up to here has arrived at the sender of this
  frame_kind kind = frame_kind::data;
  std::vector<std::byte> payload;

  friend bool operator==(const envelope&, const envelope&) = default;
};

inline constexpr std::size_t max_run_id_bytes = 64;

// What an encoded envelope is longer than its payload, at most.
inline constexpr std::size_t max_envelope_bytes = 256;

std::vector<std::byte> encode(const envelope& what);

// The same with a payload that lies elsewhere; `what.payload` is ignored.
std::vector<std::byte> encode(const envelope& what, std::span<const std::byte> payload);

// The bytes need no alignment. The error is bad_data and says what is wrong with them.
result<envelope> decode(std::span<const std::byte> frame);

}  // namespace troupe::comm
