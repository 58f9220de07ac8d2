// A small run in numbers, for tests of a member's arithmetic: its batches, settings and samples.
#pragma once

#include <algorithm>

#include "actors/model_computation.hpp"
#include "tests/support/small_training.hpp"
#include "tests/support/tiny_model.hpp"

namespace troupe::actors {

struct run_shape {
  std::size_t global_batch = 7, virtual_ranks = 7, micro_batch = 2;
  std::size_t seq_len = 9;
};

inline trainer_settings settings_of(const run_shape& shape) {
  trainer_settings s = tests::small_training();
  s.batch = {shape.global_batch, shape.virtual_ranks, shape.micro_batch};
  s.seq_len = shape.seq_len;
  s.seed = 5;
  s.max_norm = 1.0;
  return s;
}

// No target counts in this step: it is skipped.
inline constexpr std::uint64_t empty_step = 2;

inline tests::token_batch batch_of(const run_shape& shape, const model::description& d,
                                   std::uint64_t step) {
  tests::token_batch batch =
      tests::random_batch(13, step, shape.global_batch * shape.seq_len, d.vocabulary);
  if (step == empty_step) std::ranges::fill(batch.targets, -1);
  return batch;
}

inline sample_sources sources_of(const run_shape& shape, const model::description& d) {
  sample_sources sources;
  sources.training = [shape, d](std::uint64_t position, std::span<std::int32_t> tokens,
                                std::span<std::int32_t> targets) -> status {
    const tests::token_batch batch = batch_of(shape, d, position / shape.global_batch + 1);
    const std::size_t at = position % shape.global_batch * shape.seq_len;
    std::ranges::copy(std::span(batch.tokens).subspan(at, shape.seq_len), tokens.begin());
    std::ranges::copy(std::span(batch.targets).subspan(at, shape.seq_len), targets.begin());
    return done{};
  };
  sources.validation = [shape, d](std::uint64_t window, std::span<std::int32_t> tokens,
                                  std::span<std::int32_t> targets) -> status {
    const tests::token_batch batch = tests::random_batch(99, window, shape.seq_len, d.vocabulary);
    std::ranges::copy(batch.tokens, tokens.begin());
    std::ranges::copy(batch.targets, targets.begin());
    return done{};
  };
  sources.validation_windows = 11;
  sources.validation_at_once = 3;
  return sources;
}

}  // namespace troupe::actors
