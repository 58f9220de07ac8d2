#include "compute/random_normal.hpp"

#include <array>
#include <cmath>

#include "compute/math.hpp"

namespace troupe::compute {
namespace {

// The middle of one of 2^32 equal cells of (0, 1): so the largest number is 6.66.
double fine_uniform(std::uint32_t word) { return (word + 0.5) * 0x1p-32; }

double radius(std::uint32_t word) { return std::sqrt(-2.0 * math::log(fine_uniform(word))); }

// odd 0: the cosine, 1: the sine of the pair's angle.
float projection(double length, std::uint32_t word, std::size_t odd) {
  const double half_turns = 2.0 * fine_uniform(word);
  return static_cast<float>(length * math::cos_pi(odd == 0 ? half_turns : half_turns - 0.5));
}

}  // namespace

float normal(const random_key& key, std::uint64_t element) {
  const std::array<std::uint32_t, 4> words = random_block(key, element / 4);
  const std::size_t pair = element % 4 / 2 * 2;
  return projection(radius(words[pair]), words[pair + 1], element % 2);
}

void fill_normal(const random_key& key, std::uint64_t first, std::span<float> out) {
  for (std::size_t i = 0; i < out.size();) {
    const std::array<std::uint32_t, 4> words = random_block(key, (first + i) / 4);
    const double lengths[2] = {radius(words[0]), radius(words[2])};
    for (std::size_t k = (first + i) % 4; k < 4 && i < out.size(); ++k) {
      out[i++] = projection(lengths[k / 2], words[k / 2 * 2 + 1], k % 2);
    }
  }
}

}  // namespace troupe::compute
