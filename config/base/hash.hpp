// Hashes that name bits: xxh3 with 128 bits, in xxHash's canonical big-endian form (32 hex digits).
// A checksum that only has to find an accident takes 64 bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

struct hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const hash128&, const hash128&) = default;

  std::array<std::byte, 16> canonical() const;  // high first, each half big-endian
  std::string hex() const;                      // 32 digits of canonical()
};

hash128 hash_bytes(std::span<const std::byte> bytes);
hash128 hash_text(std::string_view text);
std::uint64_t hash64_bytes(std::span<const std::byte> bytes);

// The same hash of bytes that arrive in pieces.
class hasher {
 public:
  hasher();
  ~hasher();
  hasher(hasher&&) noexcept;
  hasher& operator=(hasher&&) noexcept;

  void add(std::span<const std::byte> bytes);
  void add(const hash128& inner);     // its 16 canonical bytes
  void add_u64(std::uint64_t value);  // its 8 little-endian bytes
  hash128 finish() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace troupe
