// Standard normal numbers without state. Elements 2i and 2i + 1 are the cosine and the sine of one
// Box-Muller pair, made in double from the two words of random.hpp that belong to them, then
// rounded to fp32. Not chosen: rejection methods, whose use of words depends on their values.
#pragma once

#include <cstdint>
#include <span>

#include "compute/random.hpp"

namespace troupe::compute {

float normal(const random_key& key, std::uint64_t element);

// out[i] = normal(key, first + i), a few times faster than one by one.
void fill_normal(const random_key& key, std::uint64_t first, std::span<float> out);

}  // namespace troupe::compute
