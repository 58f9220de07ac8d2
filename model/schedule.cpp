#include "model/schedule.hpp"

#include <algorithm>
#include <cmath>

#include "compute/math.hpp"
#include "config/base/error.hpp"

namespace troupe::model {
namespace {

double shape_at(decay_shape shape, double progress) {
  switch (shape) {
    case decay_shape::linear:
      return 1.0 - progress;
    case decay_shape::cosine:
      return 0.5 * (1.0 + compute::math::cos_pi(progress));
    case decay_shape::sqrt:
      return 1.0 - std::sqrt(progress);
    case decay_shape::constant:
      return 1.0;
  }
  return 1.0;
}

}  // namespace

float schedule::rate(std::uint64_t step) const {
  ensure(step >= 1 && total_steps >= 1, "a rate was asked for outside of the run");
  const double s = static_cast<double>(step - 1);  // finished steps
  const double warmup = static_cast<double>(warmup_steps);
  if (s < warmup) return static_cast<float>(lr * ((s + 1.0) / warmup));

  const double total = static_cast<double>(total_steps);
  const double decay_steps =
      std::min(decay_ratio ? std::round(*decay_ratio * total) : total - warmup, total - warmup);
  const double start = total + 1.0 - decay_steps;  // finished steps at which the decay begins
  if (shape == decay_shape::constant || decay_steps == 0 || s < start) {
    return static_cast<float>(lr);
  }
  const double progress = std::min(1.0, (s + 1.0 - start) / decay_steps);
  return static_cast<float>(lr * (min_factor + (1.0 - min_factor) * shape_at(shape, progress)));
}

}  // namespace troupe::model
