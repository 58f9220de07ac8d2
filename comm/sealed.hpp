// Bytes that UCX will read without checking (its addresses) are sealed for the way: a mark of what
// they are, a number, their length and their hash. A seal keeps out strangers who knock at the
// wrong port, other versions, and damage; it does not authenticate, which is the handshake's work.
#pragma once

#include "comm/transport.hpp"

namespace troupe::comm {

struct unsealed {
  std::uint32_t number = 0;
  bytes content;
};

inline constexpr std::size_t seal_bytes = 32;
inline constexpr std::size_t max_sealed_bytes = std::size_t{64} << 10;

bytes seal(std::uint64_t mark, std::uint32_t number, bytes_view content);
// The whole length of a sealed record, from its first `seal_bytes`; nothing: it is none of ours.
std::optional<std::size_t> sealed_size(std::uint64_t mark, bytes_view beginning);
result<unsealed> unseal(std::uint64_t mark, bytes_view record);

}  // namespace troupe::comm
