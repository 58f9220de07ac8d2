// The loss on held-out windows. Runs between steps on stable parameters, without dropout, from
// window 0 on every time; it draws no random number and moves no position of the training data. The
// windows are cut into the same number of shares as there are virtual ranks, each share is one
// chain, and the shares are summed in the fixed tree: so the result has the same bits for every way
// of computing it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "actors/computation.hpp"
#include "config/base/tree.hpp"
#include "model/network.hpp"

namespace troupe::actors {

struct validation_result {
  double loss = 0;    // mean over counted target tokens, nats
  double tokens = 0;  // counted target tokens
};

// Fills the tokens and targets of window `index`, T each.
using window_source = std::function<status(std::uint64_t index, std::span<std::int32_t> tokens,
                                           std::span<std::int32_t> targets)>;

// Which windows there are, and how they are cut: window w belongs to share floor(w shares /
// windows), contiguous and as even as can be. Both at least 1.
struct validation_cut {
  std::uint64_t windows = 0;
  std::uint64_t shares = 0;
  std::uint64_t first_window(std::uint64_t share) const {
    return (share * windows + shares - 1) / shares;
  }
};

// The losses of some shares, one entry each.
result<std::vector<leaf_loss>> share_losses(model::evaluation& evaluation,
                                            const model::model_state& state, std::size_t seq_len,
                                            const validation_cut& cut, tree_node shares,
                                            const window_source& source);

// From the losses of all shares. No counted token at all gives loss 0 and tokens 0.
validation_result add_shares(std::span<const leaf_loss> shares);

// Both, for one worker.
result<validation_result> validate(model::evaluation& evaluation, const model::model_state& state,
                                   std::size_t seq_len, std::uint64_t windows, std::size_t shares,
                                   const window_source& source);

}  // namespace troupe::actors
