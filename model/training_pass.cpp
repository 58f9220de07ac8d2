#include "model/training_pass.hpp"

#include <algorithm>
#include <utility>

#include "config/base/error.hpp"
#include "model/job_chain.hpp"

namespace troupe::model {

using compute::const_view;
using compute::dtype;
using compute::ops;
using compute::view;

training_pass::training_pass(const network& net, const batch_shape& shape)
    : training_pass(net, shape, {0, static_cast<std::uint32_t>(shape.virtual_ranks)}) {}

training_pass::training_pass(const network& net, const batch_shape& shape, tree_node ranks,
                             std::shared_ptr<pass_memory> memory)
    : net_(net),
      shape_{shape.global_batch, shape.virtual_ranks,
             std::min(shape.micro_batch, ranks.leaves * shape.sequences_per_rank())},
      ranks_(ranks),
      memory_(std::move(memory)) {
  ensure(shape.virtual_ranks > 0 && shape.global_batch % shape.virtual_ranks == 0,
         "the virtual ranks must divide the global batch");
  ensure(shape.micro_batch > 0, "a micro-batch has at least one sequence");
  compute::executor& device = net.device();
  const description& d = net.described();
  const auto leaves = static_cast<std::uint32_t>(shape.virtual_ranks);
  for (const layer_layout& layer : net.layout()) {
    trees_.emplace_back(device, layer.elements, ranks, leaves);
  }
  if (d.tied) tied_head_.emplace_back(device, d.vocabulary * d.width, ranks, leaves);
  tokens_ = device.allocate(sequences() * net.seq_len(), dtype::int32);
  targets_ = device.allocate(sequences() * net.seq_len(), dtype::int32);
  loss_sums_ = device.allocate(ranks.leaves, dtype::float64);
  if (memory_->bytes() == 0) memory_->reserve(net_, shape_.micro_batch * net_.seq_len());
}

std::vector<step_job> training_pass::jobs(const model_state& state, std::uint64_t step,
                                          std::span<const std::int32_t> tokens,
                                          std::span<const std::int32_t> targets) {
  const std::size_t all_rows = sequences() * net_.seq_len();
  ensure(tokens.size() == all_rows && targets.size() == all_rows,
         "a step needs all sequences of its virtual ranks");
  std::vector<step_job> all;
  all.push_back({step_job::part::forward, {}, {}, [this, tokens, targets](ops& ops) {
                   begin(ops, tokens, targets);
                 }});
  const std::size_t end = first_sequence() + sequences();
  for (std::size_t first = first_sequence(); first < end; first += shape_.micro_batch) {
    const micro_batch batch{.step = step,
                            .first_sequence = first,
                            .sequences = std::min(shape_.micro_batch, end - first)};
    forward(all, state, batch);
    backward(all, state, batch);
    all.back().ends_micro_batch = true;
  }
  all.push_back({step_job::part::backward, {}, {}, [this](ops& ops) {
                   ops.copy(loss_sums_.all(), compute::host_view(std::span(losses_.loss_sums)));
                 }});
  return all;
}

void training_pass::begin(ops& ops, std::span<const std::int32_t> tokens,
                          std::span<const std::int32_t> targets) {
  memory_->reserve(net_, shape_.micro_batch * net_.seq_len());
  for (gradient_tree& tree : trees_) tree.reset();
  for (gradient_tree& tree : tied_head_) tree.reset();
  losses_.loss_sums.assign(ranks_.leaves, 0.0);
  losses_.tokens.assign(ranks_.leaves, 0.0);
  const std::size_t rank_rows = shape_.sequences_per_rank() * net_.seq_len();
  for (std::size_t i = 0; i < targets.size(); ++i)
    losses_.tokens[i / rank_rows] += targets[i] >= 0 ? 1.0 : 0.0;
  ops.copy(compute::host_view(tokens), tokens_.all());
  ops.copy(compute::host_view(targets), targets_.all());
  ops.copy(compute::host_view(std::span<const double>(losses_.loss_sums)), loss_sums_.all());
}

view training_pass::node(const layer_source& of, tree_node which) {
  if (of.source == 0) return trees_.at(of.layer).node(which);
  ensure(of.layer == net_.embedding_layer() && !tied_head_.empty(),
         "a layer was asked for a second gradient that it does not have");
  return tied_head_.front().node(which);
}

std::optional<leaf_losses> training_pass::run(const model_state& state, std::uint64_t step,
                                              std::span<const std::int32_t> tokens,
                                              std::span<const std::int32_t> targets,
                                              const std::function<bool()>& give_up) {
  ensure(ranks_.leaves == shape_.virtual_ranks, "a whole step was asked of a part of its ranks");
  job_chain chain(net_.device(), give_up);
  for (step_job& job : jobs(state, step, tokens, targets)) chain.add(std::move(job.work));
  if (!tied_head_.empty()) {
    chain.add([&](ops& ops) {
      const tensor_info* table =
          net_.layout()[net_.embedding_layer()].find(tensor_role::token_table);
      const view sum = trees_[net_.embedding_layer()].sum().part(table->offset, table->size);
      ops.add(tied_head_.front().sum(), sum, sum);
    });
  }
  try {
    chain.wait();
  } catch (const compute::executor::cancelled&) {
    return std::nullopt;
  }
  return losses_;
}

view training_pass::gradient(std::size_t layer) { return trees_.at(layer).sum(); }

// Parameters are asked for by the first micro-batch alone; backward reads what forward has read.
void training_pass::forward(std::vector<step_job>& to, const model_state& state,
                            const micro_batch& batch) {
  const auto add = [&](std::size_t layer, compute::executor::job work) {
    const bool first = batch.first_sequence == first_sequence();
    to.push_back({step_job::part::forward,
                  first ? std::optional(layer) : std::nullopt,
                  {},
                  std::move(work)});
  };
  add(net_.embedding_layer(), [this, &state, batch](ops& ops) {
    net_.embed(ops, state, batch, net_.seq_len(), true, batch_rows(tokens_, batch),
               memory_->kept.front().input.all());
  });
  for (std::size_t i = 0; i < net_.layers().size(); ++i) {
    add(net_.transformer_index(i), [this, &state, batch, i](ops& ops) {
      const view out = i + 1 < net_.layers().size() ? memory_->kept[i + 1].input.all()
                                                    : memory_->head_input.all();
      net_.layers()[i].forward(ops, state.layers[net_.transformer_index(i)].parameters.all(),
                               net_.rotary(), batch, net_.seq_len(), true, memory_->kept[i],
                               memory_->branch.all(), out);
    });
  }
  add(net_.head_layer(), [this, &state, batch](ops& ops) { head(ops, state, batch); });
  if (!last(batch)) return;
  to.back().completes = {{net_.head_layer(), 0}};
  if (!tied_head_.empty()) to.back().completes.push_back({net_.embedding_layer(), 1});
}

void training_pass::head(ops& ops, const model_state& state, const micro_batch& batch) {
  const description& d = net_.described();
  const std::size_t rows = rows_of(batch);
  net_.final_norm(ops, state, rows, memory_->head_input.all(), memory_->normed.all(),
                  memory_->mean.all(), memory_->rstd.all());

  const const_view targets = batch_rows(targets_, batch);
  std::size_t rank = batch.first_sequence / shape_.sequences_per_rank() - ranks_.first;
  for (const leaf_range& range : ranges_of(batch)) head_range(ops, state, range, targets, rank++);

  const tensor_info* gain = net_.layout()[net_.head_layer()].find(tensor_role::final_norm);
  ops.norm_backward_input(
      {.kind = d.family == family::gpt2 ? compute::norm_kind::layer : compute::norm_kind::rms,
       .rows = rows,
       .width = d.width,
       .dy = memory_->normed_gradient.all(),
       .x = memory_->head_input.all(),
       .gain = state.layers[net_.head_layer()].parameters.part(gain->offset, gain->size),
       .mean = memory_->mean.all(),
       .rstd = memory_->rstd.all(),
       .dx = memory_->gradient_a.all()});
}

// Logits, loss and the head's gradients for the rows of one virtual rank, some rows at a time so
// that the [rows, V] matrix stays small.
void training_pass::head_range(ops& ops, const model_state& state, const leaf_range& range,
                               const_view targets, std::size_t rank) {
  const description& d = net_.described();
  const layer_layout& layer = net_.layout()[net_.head_layer()];
  gradient_tree& tree = trees_[net_.head_layer()];
  const view leaf = tree.leaf();
  const auto tensor = [&](tensor_role role) {
    const tensor_info* t = layer.find(role);
    return t == nullptr ? view{} : leaf.part(t->offset, t->size);
  };
  const view head_gradient = d.tied ? tied_head_.front().leaf() : tensor(tensor_role::head);
  const std::size_t end = range.first_row + range.rows;
  const std::size_t chunk = net_.head_chunk(shape_.micro_batch * net_.seq_len());
  bool fresh = range.opens;
  for (std::size_t at = range.first_row; at < end; at += chunk) {
    const std::size_t rows = std::min(chunk, end - at);
    const const_view x = memory_->normed.part(at * d.width, rows * d.width);
    ops.linear({.rows = rows,
                .in = d.width,
                .out = d.vocabulary,
                .x = x,
                .w = net_.head_matrix(state),
                .y = memory_->logits.all()});
    ops.cross_entropy({.rows = rows,
                       .vocabulary = d.vocabulary,
                       .targets = targets.part(at, rows),
                       .logits = memory_->logits.all(),
                       .losses = memory_->losses.part(at, rows)});
    ops.linear_backward_input({.rows = rows,
                               .in = d.width,
                               .out = d.vocabulary,
                               .dy = memory_->logits.all(),
                               .w = net_.head_matrix(state),
                               .dx = memory_->normed_gradient.part(at * d.width, rows * d.width)});
    ops.linear_backward_weight({.rows = rows,
                                .in = d.width,
                                .out = d.vocabulary,
                                .dy = memory_->logits.all(),
                                .x = x,
                                .dw = head_gradient,
                                .fresh = fresh});
    fresh = false;
  }
  ops.add_in_order(memory_->losses.part(range.first_row, range.rows), loss_sums_.part(rank, 1));
  const auto rows_part = [&](const compute::buffer& b) {
    return b ? b.part(range.first_row, range.rows) : const_view{};
  };
  ops.norm_backward_weight(
      {.kind = d.family == family::gpt2 ? compute::norm_kind::layer : compute::norm_kind::rms,
       .rows = range.rows,
       .width = d.width,
       .dy = memory_->normed_gradient.part(range.first_row * d.width, range.rows * d.width),
       .x = memory_->head_input.part(range.first_row * d.width, range.rows * d.width),
       .mean = rows_part(memory_->mean),
       .rstd = rows_part(memory_->rstd),
       .dgain = tensor(tensor_role::final_norm),
       .dbias = tensor(tensor_role::final_norm_bias),
       .fresh = range.opens});
  if (!range.closes) return;
  tree.close_leaf(ops);
  if (d.tied) tied_head_.front().close_leaf(ops);
}

void training_pass::backward(std::vector<step_job>& to, const model_state& state,
                             const micro_batch& batch) {
  const auto add = [&](std::size_t layer, compute::executor::job work) {
    to.push_back({step_job::part::backward, {}, {}, std::move(work)});
    if (last(batch)) to.back().completes = {{layer, 0}};
  };
  bool swapped = false;  // which of the two stream buffers holds the gradient from above
  for (std::size_t i = net_.layers().size(); i-- > 0; swapped = !swapped) {
    add(net_.transformer_index(i), [this, &state, batch, i, swapped](ops& ops) {
      const view above = swapped ? memory_->gradient_b.all() : memory_->gradient_a.all();
      const view below = swapped ? memory_->gradient_a.all() : memory_->gradient_b.all();
      const transformer_layer& layer = net_.layers()[i];
      gradient_tree& tree = trees_[net_.transformer_index(i)];
      layer.backward_input(ops, state.layers[net_.transformer_index(i)].parameters.all(),
                           net_.rotary(), batch, net_.seq_len(), memory_->kept[i],
                           memory_->at.front(), above, below);
      for (const leaf_range& range : ranges_of(batch)) {
        layer.backward_weight(ops, range, memory_->kept[i], memory_->at.front(), above,
                              tree.leaf());
        if (range.closes) tree.close_leaf(ops);
      }
    });
  }
  add(net_.embedding_layer(), [this, batch, swapped](ops& ops) {
    if (swapped) std::swap(memory_->gradient_a, memory_->gradient_b);
    embedding_backward(ops, batch);
  });
}

// The gradient of the residual stream at the embedding's output stands in gradient_a.
void training_pass::embedding_backward(ops& ops, const micro_batch& batch) {
  const description& d = net_.described();
  const std::size_t rows = rows_of(batch);
  if (d.dropout > 0) {
    ops.dropout({.rows = rows,
                 .seq_len = net_.seq_len(),
                 .width = d.width,
                 .x = memory_->gradient_a.all(),
                 .dropout = net_.embedding_mask(batch, true),
                 .out = memory_->gradient_a.all()});
  }
  const layer_layout& layer = net_.layout()[net_.embedding_layer()];
  gradient_tree& tree = trees_[net_.embedding_layer()];
  const const_view tokens = batch_rows(tokens_, batch);
  for (const leaf_range& range : ranges_of(batch)) {
    const view leaf = tree.leaf();
    const tensor_info* table = layer.find(tensor_role::token_table);
    const tensor_info* positions = layer.find(tensor_role::position_table);
    if (range.opens) ops.fill(leaf, 0.0f);
    ops.embedding_backward(
        {.rows = range.rows,
         .seq_len = net_.seq_len(),
         .width = d.width,
         .vocabulary = d.vocabulary,
         .tokens = tokens.part(range.first_row, range.rows),
         .dout = memory_->gradient_a.part(range.first_row * d.width, range.rows * d.width),
         .dtable = leaf.part(table->offset, table->size),
         .dpositions =
             positions == nullptr ? view{} : leaf.part(positions->offset, positions->size)});
    if (range.closes) tree.close_leaf(ops);
  }
}

std::size_t training_pass::activation_bytes() const {
  return memory_->bytes() + tokens_.bytes() + targets_.bytes();
}

std::size_t training_pass::gradient_bytes() const {
  std::size_t bytes = 0;
  for (const gradient_tree& tree : trees_) bytes += tree.bytes();
  for (const gradient_tree& tree : tied_head_) bytes += tree.bytes();
  return bytes;
}

}  // namespace troupe::model
