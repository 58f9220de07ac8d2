// Forward and backward over the sequences of a step: from parameters and tokens to one gradient sum
// a layer, added over the virtual ranks in the fixed tree.
//
// One set of activations is kept for every layer of one micro-batch; gradients of activations need
// only one set, because a layer's weights get theirs before the next layer's inputs do. A tied
// token table has two gradients, one from the embedding and one from the head, each with a tree of
// its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "model/gradient_tree.hpp"
#include "model/job_chain.hpp"
#include "model/network.hpp"

namespace troupe::model {

struct batch_shape {
  std::size_t global_batch = 0;   // sequences a step
  std::size_t virtual_ranks = 0;  // divides global_batch
  std::size_t micro_batch =
      0;  // sequences computed at once, at most; never of consequence for bits
  std::size_t sequences_per_rank() const { return global_batch / virtual_ranks; }
};

// What a step's virtual ranks lost and counted, in rank order.
struct leaf_losses {
  std::vector<double> loss_sums;  // nats, over counted target tokens
  std::vector<double> tokens;     // counted target tokens
};

class training_pass {
 public:
  training_pass(const network& net, const batch_shape& shape);

  // tokens, targets: [global_batch, T]; target -1 counts for nothing. Blocks until the sums are
  // ready.
  // `give_up` is asked before each job; nothing is returned once it says yes.
  std::optional<leaf_losses> run(const model_state& state, std::uint64_t step,
                                 std::span<const std::int32_t> tokens,
                                 std::span<const std::int32_t> targets,
                                 const std::function<bool()>& give_up = {});

  // The gradient sum of a layer's flat vector (not yet divided by the token count). A tied table's
  // sum is embedding + head. Valid until the next run.
  compute::view gradient(std::size_t layer);

  std::size_t activation_bytes() const;  // everything that grows with the micro-batch
  std::size_t gradient_bytes() const;

 private:
  void forward(job_chain& jobs, const model_state& state, const micro_batch& batch);
  void head(compute::ops& ops, const model_state& state, const micro_batch& batch);
  void head_range(compute::ops& ops, const model_state& state, const leaf_range& range,
                  compute::const_view targets, std::size_t rank);
  void backward(job_chain& jobs, const model_state& state, const micro_batch& batch);
  void embedding_backward(compute::ops& ops, const micro_batch& batch);
  std::size_t rows_of(const micro_batch& batch) const { return batch.sequences * net_.seq_len(); }
  std::vector<leaf_range> ranges_of(const micro_batch& batch) const {
    return leaf_ranges(batch, shape_.sequences_per_rank(), net_.seq_len());
  }
  compute::const_view batch_rows(const compute::buffer& all, const micro_batch& batch) const {
    return all.part(batch.first_sequence * net_.seq_len(), rows_of(batch));
  }

  const network& net_;
  batch_shape shape_;
  std::vector<layer_activations> kept_;
  layer_gradients at_;
  std::vector<gradient_tree> trees_;      // one a layer
  std::vector<gradient_tree> tied_head_;  // one if tied, else none
  compute::buffer tokens_, targets_;      // [global_batch, T]
  compute::buffer head_input_, normed_, normed_gradient_, mean_, rstd_, logits_, losses_, branch_;
  compute::buffer gradient_a_, gradient_b_;  // of the residual stream, used in turn
  compute::buffer loss_sums_;                // float64 [virtual ranks]
};

}  // namespace troupe::model
