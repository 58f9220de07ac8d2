// Random numbers without state: the value follows from its key alone, so it does not matter who
// draws it, when, or how often. Philox4x32 with 10 rounds (Salmon et al., "Parallel random numbers:
// as easy as 1, 2, 3", 2011). Key: the run's seed. Counter: {element / 4, purpose << 24 ^ layer,
// sequence, step}, each 32 bits; the four words of a counter serve four consecutive elements.
#pragma once

#include <array>
#include <cstdint>

#include "compute/ops.hpp"

namespace troupe::compute {

struct random_key {
  std::uint64_t seed = 0;
  random_purpose purpose = random_purpose::initialization;
  std::uint64_t step = 0;
  std::uint64_t sequence = 0;
  std::uint32_t layer = 0;
};

// The second counter word of a block.
constexpr std::uint32_t counter_word(const random_key& key, std::uint64_t block) {
  return (static_cast<std::uint32_t>(key.purpose) << 24) ^ key.layer ^
         (static_cast<std::uint32_t>(block >> 32) << 16);
}

// The four words of counter block `block` (elements 4 block ... 4 block + 3).
constexpr std::array<std::uint32_t, 4> random_block(const random_key& key, std::uint64_t block) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key.seed);
  std::uint32_t k1 = static_cast<std::uint32_t>(key.seed >> 32);
  std::array<std::uint32_t, 4> c = {static_cast<std::uint32_t>(block), counter_word(key, block),
                                    static_cast<std::uint32_t>(key.sequence),
                                    static_cast<std::uint32_t>(key.step)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = static_cast<std::uint64_t>(0xD2511F53u) * c[0];
    const std::uint64_t b = static_cast<std::uint64_t>(0xCD9E8D57u) * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

constexpr std::uint32_t random_word(const random_key& key, std::uint64_t element) {
  return random_block(key, element / 4)[element % 4];
}

// Uniform in (0, 1): the middle of one of 2^23 equal cells, exact in fp32 (of 2^24 cells the last
// one's middle would round to 1).
constexpr float uniform(std::uint32_t word) {
  return (static_cast<float>(word >> 9) + 0.5f) * 0x1p-23f;
}

// Dropout removes an element when its word is below this.
constexpr std::uint32_t dropout_threshold(float probability) {
  return static_cast<std::uint32_t>(static_cast<double>(probability) * 4294967296.0);
}

}  // namespace troupe::compute
