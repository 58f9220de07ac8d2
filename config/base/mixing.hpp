// One mixing function for everything that draws: a fault's moment, a simulated delay, a torn write.
// The result depends on the arguments alone, so that a seed means the same on every machine and in
// every order of calls. Not for anything that feeds trained bits: those draw from
// compute/random.hpp.
//
// It is the finaliser of splitmix64. The standard library's engines are not chosen because their
// distributions are not the same everywhere.
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe {

constexpr std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// The next draw of a sequence that is kept as one number.
constexpr std::uint64_t next_mixed(std::uint64_t& state) {
  return mixed(state += 0x9e3779b97f4a7c15ULL);
}

// Order counts: mixed(a, b) is not mixed(b, a).
constexpr std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  return mixed(mixed(a + 0x9e3779b97f4a7c15ULL) + b + 0x9e3779b97f4a7c15ULL);
}

constexpr std::uint64_t mixed(std::uint64_t a, std::string_view text) {
  for (const char c : text) a = mixed(a, static_cast<unsigned char>(c));
  return mixed(a, text.size());
}

// A number of [0, 1) from 53 of the bits.
constexpr double unit_interval(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

// A number of [0, limit) from the bits, for limits far below 2^53. Requires limit > 0.
constexpr std::uint64_t below(std::uint64_t bits, std::uint64_t limit) {
  return static_cast<std::uint64_t>(unit_interval(bits) * static_cast<double>(limit));
}

}  // namespace troupe
