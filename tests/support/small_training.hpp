// How small runs of tests are trained: rate and optimizer; the batch is each test's own.
#pragma once

#include "actors/trainer.hpp"

namespace troupe::tests {

inline actors::trainer_settings small_training() {
  actors::trainer_settings s;
  s.schedule = {.lr = 1e-2,
                .warmup_steps = 1,
                .total_steps = 10,
                .decay_ratio = {},
                .shape = model::decay_shape::cosine,
                .min_factor = 0.1};
  s.adamw = {.beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1};
  return s;
}

}  // namespace troupe::tests
