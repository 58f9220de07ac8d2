// Dropout on the probabilities of one query and one key block: the mask rule of ops.hpp, eight
// counters at a time. Element (head * T + query) * T + key; four consecutive elements share a
// counter of random.hpp.
#pragma once

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "compute/cpu/attention_panels.hpp"
#include "compute/random.hpp"

namespace troupe::compute::cpu {

class attention_dropout {
 public:
  explicit attention_dropout(const dropout_mask& mask)
      : active_(mask.probability > 0),
        threshold_(dropout_threshold(mask.probability)),
        keep_scale_(1.0f / (1.0f - mask.probability)),
        key_{mask.seed, mask.purpose, mask.step, mask.first_sequence, mask.layer} {}

  bool active() const { return active_; }

  // Draws the words of elements first ... first + count - 1 (count <= 64) of `sequence`, which
  // counts from the micro-batch's first.
  void draw(std::size_t sequence, std::uint64_t first, std::size_t count) {
    using tag = hwy::HWY_NAMESPACE::FixedTag<std::uint32_t, 8>;
    namespace hn = hwy::HWY_NAMESPACE;
    const tag d;
    random_key key = key_;
    key.sequence += sequence;
    offset_ = first % 4;
    const std::uint64_t block = first / 4;
    const std::size_t blocks = (offset_ + count + 3) / 4;
    for (std::size_t n = 0; n < blocks; n += 8) {
      alignas(32) std::uint32_t low[8], high[8];
      for (std::size_t lane = 0; lane < 8; ++lane) {
        low[lane] = static_cast<std::uint32_t>(block + n + lane);
        high[lane] = static_cast<std::uint32_t>((block + n + lane) >> 32) << 16;
      }
      auto c0 = hn::Load(d, low);
      auto c1 = hn::Xor(hn::Set(d, (static_cast<std::uint32_t>(key.purpose) << 24) ^ key.layer),
                        hn::Load(d, high));
      auto c2 = hn::Set(d, static_cast<std::uint32_t>(key.sequence));
      auto c3 = hn::Set(d, static_cast<std::uint32_t>(key.step));
      auto k0 = static_cast<std::uint32_t>(key.seed);
      auto k1 = static_cast<std::uint32_t>(key.seed >> 32);
      for (int round = 0; round < 10; ++round) {
        const auto a = wide_product(hn::Set(d, 0xD2511F53u), c0);
        const auto b = wide_product(hn::Set(d, 0xCD9E8D57u), c2);
        c0 = hn::Xor(hn::Xor(b.high, c1), hn::Set(d, k0));
        c1 = b.low;
        c2 = hn::Xor(hn::Xor(a.high, c3), hn::Set(d, k1));
        c3 = a.low;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
      }
      hn::StoreInterleaved4(c0, c1, c2, c3, d, words_ + 4 * n);
    }
  }

  // The eight values that belong to elements first + at ... of the last draw: +0, or times 1 / (1 -
  // p).
  panels::vec8 apply(std::size_t at, panels::vec8 values) const {
    using tag = hwy::HWY_NAMESPACE::FixedTag<std::uint32_t, 8>;
    namespace hn = hwy::HWY_NAMESPACE;
    const auto dropped =
        hn::Lt(hn::LoadU(tag(), words_ + offset_ + at), hn::Set(tag(), threshold_));
    return hn::IfThenZeroElse(hn::RebindMask(panels::tag8(), dropped),
                              hn::Mul(values, hn::Set(panels::tag8(), keep_scale_)));
  }

 private:
  using lanes = hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::FixedTag<std::uint32_t, 8>>;
  struct wide {
    lanes low, high;
  };
  static wide wide_product(lanes a, lanes b) {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::FixedTag<std::uint32_t, 8> d;
    const hn::FixedTag<std::uint64_t, 4> d64;
    const auto even = hn::MulEven(a, b);
    const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a))),
                                 hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, b))));
    return {hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even)),
            hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)))};
  }

  bool active_;
  std::uint32_t threshold_;
  float keep_scale_;
  random_key key_;
  std::size_t offset_ = 0;
  // 64 words, up to three before them, rounded up to whole draws of 32, and a vector read past the
  // end.
  alignas(32) std::uint32_t words_[96 + 8] = {};
};

}  // namespace troupe::compute::cpu
