// Forward and backward over the sequences of a run of virtual ranks: from parameters and tokens to
// the nodes of the fixed tree that this run completes, for each layer. A lone worker's run is all
// virtual ranks, and its node is the gradient sum.
//
// A step is a list of jobs, each at most one layer of one micro-batch, for whoever feeds them to
// the device: run() does it at once and blocks; many workers hold a job back until the parameters
// that it reads have arrived, and send a layer's nodes while the layers below are computed.
//
// One set of activations is kept for every layer of one micro-batch; gradients of activations need
// only one set, because a layer's weights get theirs before the next layer's inputs do. A tied
// token table has two gradients, one from the embedding and one from the head, each with a tree of
// its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/gradient_tree.hpp"
#include "model/network.hpp"
#include "model/pass_memory.hpp"

namespace troupe::model {

struct batch_shape {
  std::size_t global_batch = 0;   // sequences a step
  std::size_t virtual_ranks = 0;  // divides global_batch
  std::size_t micro_batch =
      0;  // sequences computed at once, at most; never of consequence for bits
  std::size_t sequences_per_rank() const { return global_batch / virtual_ranks; }
};

// What virtual ranks lost and counted, in rank order.
struct leaf_losses {
  std::vector<double> loss_sums;  // nats, over counted target tokens
  std::vector<double> tokens;     // counted target tokens
};

// One of the gradients that a layer sums. Source 0 is the layer's own; source 1 of the embedding is
// the head's gradient of a tied token table.
struct layer_source {
  std::size_t layer = 0;
  std::uint8_t source = 0;
  friend auto operator<=>(const layer_source&, const layer_source&) = default;
};

// Jobs run one after the other, in their order.
struct step_job {
  enum class part : std::uint8_t { forward, backward };
  part kind = part::forward;
  std::optional<std::size_t> needs;     // a layer whose parameters no job before has read
  std::vector<layer_source> completes;  // all nodes of these are there once it is done
  compute::executor::job work;
  bool ends_micro_batch = false;
};

class training_pass {
 public:
  // All virtual ranks, or only `ranks`, perhaps in the memory of an earlier pass of the same
  // network. Memory that is too small grows in the first job, on the device's thread.
  training_pass(const network& net, const batch_shape& shape);
  training_pass(const network& net, const batch_shape& shape, tree_node ranks,
                std::shared_ptr<pass_memory> memory = std::make_shared<pass_memory>());

  tree_node ranks() const { return ranks_; }
  std::size_t sequences() const { return ranks_.leaves * shape_.sequences_per_rank(); }

  // tokens, targets: [sequences(), T]; target -1 counts for nothing. The first job reads them and
  // forgets what the step before has left, so a step may be left in the middle. The jobs refer to
  // this pass and to `state`.
  std::vector<step_job> jobs(const model_state& state, std::uint64_t step,
                             std::span<const std::int32_t> tokens,
                             std::span<const std::int32_t> targets);
  // After the last job; valid until the next step's first one.
  const leaf_losses& losses() const { return losses_; }
  // After the job that completes it: a node of the source's tree, [elements of the source].
  compute::view node(const layer_source& of, tree_node which);

  // All jobs, one after the other; then adds the two gradients of a tied table. Only for all
  // virtual ranks. `give_up` is asked before each job; nothing is returned once it says yes.
  std::optional<leaf_losses> run(const model_state& state, std::uint64_t step,
                                 std::span<const std::int32_t> tokens,
                                 std::span<const std::int32_t> targets,
                                 const std::function<bool()>& give_up = {});
  // After run(): the gradient sum of a layer's flat vector (not yet divided by the token count). A
  // tied table's sum is embedding + head. Valid until the next run.
  compute::view gradient(std::size_t layer);

  std::size_t activation_bytes() const;  // everything that grows with the micro-batch
  std::size_t gradient_bytes() const;

 private:
  void begin(compute::ops& ops, std::span<const std::int32_t> tokens,
             std::span<const std::int32_t> targets);
  void forward(std::vector<step_job>& to, const model_state& state, const micro_batch& batch);
  void head(compute::ops& ops, const model_state& state, const micro_batch& batch);
  void head_range(compute::ops& ops, const model_state& state, const leaf_range& range,
                  compute::const_view targets, std::size_t rank);
  void backward(std::vector<step_job>& to, const model_state& state, const micro_batch& batch);
  void embedding_backward(compute::ops& ops, const micro_batch& batch);
  std::size_t first_sequence() const { return ranks_.first * shape_.sequences_per_rank(); }
  bool last(const micro_batch& batch) const {
    return batch.first_sequence + batch.sequences == first_sequence() + sequences();
  }
  std::size_t rows_of(const micro_batch& batch) const { return batch.sequences * net_.seq_len(); }
  std::vector<leaf_range> ranges_of(const micro_batch& batch) const {
    return leaf_ranges(batch, shape_.sequences_per_rank(), net_.seq_len());
  }
  compute::const_view batch_rows(const compute::buffer& all, const micro_batch& batch) const {
    return all.part((batch.first_sequence - first_sequence()) * net_.seq_len(), rows_of(batch));
  }

  const network& net_;
  batch_shape shape_;
  tree_node ranks_;
  std::shared_ptr<pass_memory> memory_;
  std::vector<gradient_tree> trees_;      // one a layer
  std::vector<gradient_tree> tied_head_;  // one if tied, else none
  compute::buffer tokens_, targets_;      // [sequences(), T]
  compute::buffer loss_sums_;             // float64 [virtual ranks of this pass]
  leaf_losses losses_;
};

}  // namespace troupe::model
