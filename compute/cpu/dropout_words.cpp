#include "compute/cpu/dropout_words.hpp"

#include <array>

#include "config/base/error.hpp"

namespace troupe::compute::cpu {
namespace {

using word_tag = hn::FixedTag<std::uint32_t, 8>;
using word_vector = hn::Vec<word_tag>;
constexpr word_tag d;

struct wide_product {
  word_vector high, low;
};

// 32 x 32 -> 64 bits in all lanes: even and odd lanes one after the other.
HWY_INLINE wide_product multiply(word_vector a, word_vector factor) {
  const hn::FixedTag<std::uint64_t, 4> wide;
  const auto even = hn::MulEven(a, factor);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), factor);
  return {hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even))),
          hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even))};
}

// The 32 words of blocks `block` ... `block` + 7, which share the high half of their number.
HWY_INLINE void eight_blocks(const random_key& key, std::uint64_t block, std::uint32_t* out) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key.seed);
  std::uint32_t k1 = static_cast<std::uint32_t>(key.seed >> 32);
  auto c0 = hn::Iota(d, static_cast<std::uint32_t>(block));
  auto c1 = hn::Set(d, counter_word(key, block));
  auto c2 = hn::Set(d, static_cast<std::uint32_t>(key.sequence));
  auto c3 = hn::Set(d, static_cast<std::uint32_t>(key.step));
  const auto factor_a = hn::Set(d, 0xD2511F53u), factor_b = hn::Set(d, 0xCD9E8D57u);
  for (int round = 0; round < 10; ++round) {
    const wide_product a = multiply(c0, factor_a), b = multiply(c2, factor_b);
    c0 = hn::Xor(hn::Xor(b.high, c1), hn::Set(d, k0));
    c2 = hn::Xor(hn::Xor(a.high, c3), hn::Set(d, k1));
    c1 = b.low;
    c3 = a.low;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  hn::StoreInterleaved4(c0, c1, c2, c3, d, out);
}

}  // namespace

void draw_words(const random_key& key, std::uint64_t first, std::span<std::uint32_t> out) {
  for (std::size_t i = 0; i < out.size();) {
    const std::uint64_t block = (first + i) / 4;
    const std::size_t skip = (first + i) % 4;
    const std::size_t count = std::min<std::size_t>(32 - skip, out.size() - i);
    const bool same_high_half = (block >> 32) == ((block + 7) >> 32);
    if (same_high_half && skip == 0 && count == 32) {
      eight_blocks(key, block, out.data() + i);
    } else if (same_high_half) {
      std::array<std::uint32_t, 32> words;
      eight_blocks(key, block, words.data());
      std::copy_n(words.begin() + skip, count, out.begin() + i);
    } else {
      for (std::size_t k = 0; k < count; ++k) out[i + k] = random_word(key, first + i + k);
    }
    i += count;
  }
}

dropout_decider::dropout_decider(const dropout_mask& mask)
    : key_{.seed = mask.seed, .purpose = mask.purpose, .step = mask.step, .layer = mask.layer},
      first_sequence_(mask.first_sequence),
      probability_(mask.probability) {
  ensure(mask.probability >= 0 && mask.probability < 1, "dropout needs a probability in [0, 1)");
  threshold_ = dropout_threshold(mask.probability);
  scale_ = 1.0f / (1.0f - mask.probability);
}

random_key dropout_decider::key_of(std::uint64_t sequence) const {
  random_key key = key_;
  key.sequence = first_sequence_ + sequence;
  return key;
}

}  // namespace troupe::compute::cpu
