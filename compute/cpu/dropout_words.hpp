// The words that decide dropout, many at once: eight Philox counters a step. Word i of a run
// belongs to element first + i of the key, as random_word(key, first + i) says one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "compute/cpu/lanes.hpp"
#include "compute/random.hpp"

namespace troupe::compute::cpu {

// Writes words of `first`, `first` + 1, ... to all of `out`.
void draw_words(const random_key& key, std::uint64_t first, std::span<std::uint32_t> out);

// Draws and decides for one row of elements, which one key covers.
class dropout_decider {
 public:
  explicit dropout_decider(const dropout_mask& mask);

  bool active() const { return probability_ > 0; }

  // step(column, lanes, drop) for columns 0, 8, ... of a row of sequence `sequence` whose column c
  // is element first + c; drop(v) is what dropout makes of the vector at that column.
  template <class Step>
  void for_row(std::uint64_t sequence, std::uint64_t first, std::size_t width,
               const Step& step) const {
    constexpr std::size_t chunk = 512;
    std::uint32_t words[chunk];
    for (std::size_t begin = 0; begin < width; begin += chunk) {
      const std::size_t end = std::min(width, begin + chunk);
      if (active()) draw_words(key_of(sequence), first + begin, {words, (end - begin + 7) / 8 * 8});
      for_lanes(begin, end, [&](std::size_t column, auto lanes) {
        step(column, lanes,
             [&](float_vector v) { return active() ? decide(v, words + (column - begin)) : v; });
      });
    }
  }

 private:
  random_key key_of(std::uint64_t sequence) const;

  // v / (1 - p) where the word is not below the threshold, else +0.
  HWY_INLINE float_vector decide(float_vector v, const std::uint32_t* words) const {
    const hn::RebindToUnsigned<float_tag> u;
    const float_tag d;
    const auto removed = hn::RebindMask(d, hn::LoadU(u, words) < hn::Set(u, threshold_));
    return hn::IfThenZeroElse(removed, v * hn::Set(d, scale_));
  }

  random_key key_;
  std::uint64_t first_sequence_;
  float probability_;
  std::uint32_t threshold_;
  float scale_;
};

}  // namespace troupe::compute::cpu
