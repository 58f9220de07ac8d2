#include "config/base/hash.hpp"

#include <xxhash.h>

#include <bit>

#include "config/base/error.hpp"

namespace troupe {

static_assert(std::endian::native == std::endian::little, "files and hashes assume little-endian");

std::array<std::byte, 16> hash128::canonical() const {
  std::array<std::byte, 16> bytes;
  for (int i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::byte>(high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<std::byte>(low >> (56 - 8 * i));
  }
  return bytes;
}

std::string hash128::hex() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::byte b : canonical()) {
    text += digits[static_cast<unsigned>(b) >> 4];
    text += digits[static_cast<unsigned>(b) & 15];
  }
  return text;
}

hash128 hash_bytes(std::span<const std::byte> bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.high64, h.low64};
}

hash128 hash_text(std::string_view text) { return hash_bytes(std::as_bytes(std::span(text))); }

std::uint64_t hash64_bytes(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

struct hasher::state {
  XXH3_state_t* xxh = XXH3_createState();
  state() {
    ensure(xxh != nullptr, "out of memory for a hash state");
    XXH3_128bits_reset(xxh);
  }
  ~state() { XXH3_freeState(xxh); }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
};

hasher::hasher() : state_(std::make_unique<state>()) {}
hasher::~hasher() = default;
hasher::hasher(hasher&&) noexcept = default;
hasher& hasher::operator=(hasher&&) noexcept = default;

void hasher::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

void hasher::add(const hash128& inner) { add(std::span<const std::byte>(inner.canonical())); }

void hasher::add_u64(std::uint64_t value) { add(std::as_bytes(std::span(&value, 1))); }

hash128 hasher::finish() const {
  const XXH128_hash_t h = XXH3_128bits_digest(state_->xxh);
  return {h.high64, h.low64};
}

}  // namespace troupe
