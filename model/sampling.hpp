// Draws the next token from logits. The draw follows from a key alone, so the same prompt and seed
// give the same text everywhere.
#pragma once

#include <cstdint>
#include <span>

namespace troupe::model {

struct sampling_settings {
  double temperature = 1.0;  // 0: the most probable token
  std::size_t top_k = 0;     // keep the k most probable; 0: all
  std::uint64_t seed = 0;
};

// `sample`, `position`: which draw this is. Ties go to the lower token id.
std::int32_t draw_token(std::span<const float> logits, const sampling_settings& settings,
                        std::uint64_t sample, std::uint64_t position);

}  // namespace troupe::model
