// The loss on held-out windows. Runs between steps on stable parameters, without dropout, from
// window 0 on every time; it draws no random number and moves no position of the training data. The
// windows are cut into the same number of shares as there are virtual ranks, each share is one
// chain, and the shares are summed in the fixed tree: so the result has the same bits for every way
// of computing it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "model/network.hpp"

namespace troupe::actors {

struct validation_result {
  double loss = 0;    // mean over counted target tokens, nats
  double tokens = 0;  // counted target tokens
};

// Fills the tokens and targets of window `index`, T each.
using window_source = std::function<status(std::uint64_t index, std::span<std::int32_t> tokens,
                                           std::span<std::int32_t> targets)>;

// windows >= 1. No counted token at all gives loss 0 and tokens 0.
result<validation_result> validate(model::evaluation& evaluation, const model::model_state& state,
                                   std::size_t seq_len, std::uint64_t windows, std::size_t shares,
                                   const window_source& source);

}  // namespace troupe::actors
