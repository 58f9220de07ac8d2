// The learning rate of a step, as torchtitan lays it out: a linear warm-up, then full rate, then a
// decay whose shape is laid out one virtual step longer than the run, so that the last step never
// gets rate zero.
#pragma once

#include <cstdint>
#include <optional>

namespace troupe::model {

enum class decay_shape : std::uint8_t { linear, cosine, sqrt, constant };

struct schedule {
  double lr = 0;
  std::uint64_t warmup_steps = 0;
  std::uint64_t total_steps = 0;      // >= warmup_steps, > 0
  std::optional<double> decay_ratio;  // share of total_steps that decays; unset: all after warm-up
  decay_shape shape = decay_shape::cosine;
  double min_factor = 0;  // the decay ends at this share of lr

  // The rate of step n (1-based), rounded to the float that the optimizer uses.
  float rate(std::uint64_t step) const;
};

}  // namespace troupe::model
