// The memory of a training pass that grows with the micro-batch: activations and their gradients.
// Kept apart from the pass because it outlives one: after a change of plan another run of virtual
// ranks is computed in the same memory, so that nobody waits for hundreds of megabytes to be
// cleared. Used by jobs only, one after the other.
#pragma once

#include <atomic>
#include <vector>

#include "model/network.hpp"

namespace troupe::model {

struct pass_memory {
  // Room for `rows` tokens at once; what is large enough stays.
  void reserve(const network& net, std::size_t rows);
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  std::vector<layer_activations> kept;  // one a transformer layer
  std::vector<layer_gradients> at;      // one for all of them
  compute::buffer head_input, normed, normed_gradient, mean, rstd, logits, losses, branch;
  compute::buffer gradient_a, gradient_b;  // of the residual stream, used in turn

 private:
  std::size_t rows_ = 0;
  std::atomic<std::size_t> bytes_ = 0;
};

}  // namespace troupe::model
