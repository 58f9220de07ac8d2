#include "model/data/order.hpp"

#include <bit>
#include <utility>

#include "compute/random.hpp"
#include "config/base/error.hpp"

namespace troupe::model::data {

window_order::window_order(std::uint64_t windows, std::uint64_t seed, bool shuffle)
    : windows_(windows), seed_(seed), shuffle_(shuffle) {
  ensure(windows > 0, "an order needs at least one window");
  const int bits = std::bit_width(windows - 1);
  half_bits_ = bits < 2 ? 1 : (bits + 1) / 2;
}

std::uint64_t window_order::window_at(std::uint64_t position) const {
  const std::uint64_t index = position % windows_;
  return shuffle_ ? permuted(index, epoch_of(position)) : index;
}

std::uint64_t window_order::permuted(std::uint64_t index, std::uint64_t epoch) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  compute::random_key key;
  key.seed = seed_;
  key.purpose = compute::random_purpose::data_order;
  key.step = epoch;  // the generator takes 32 bits of it; the others go into `sequence`
  do {
    std::uint64_t left = index >> half_bits_, right = index & mask;
    for (int round = 0; round < feistel_rounds; ++round) {
      key.sequence = static_cast<std::uint64_t>(round) | (epoch >> 32) << 8;
      left ^= compute::random_block(key, right)[0] & mask;
      std::swap(left, right);
    }
    index = left << half_bits_ | right;
  } while (index >= windows_);
  return index;
}

}  // namespace troupe::model::data
