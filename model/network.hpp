// The whole model on one device: forward alone for evaluation and sampling. Training adds backward,
// in training_pass.hpp. Everything is queued as jobs of one layer each.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compute/executor.hpp"
#include "model/description.hpp"
#include "model/layout.hpp"
#include "model/micro_batch.hpp"
#include "model/model_state.hpp"
#include "model/transformer_layer.hpp"

namespace troupe::model {

// The first and the last layer around the transformer layers; row letters as in compute/ops.hpp.
class network {
 public:
  // seq_len: the longest window that will be computed.
  network(compute::executor& device, const description& d, const model_layout& layout,
          std::size_t seq_len, std::uint64_t seed);

  const description& described() const { return d_; }
  const model_layout& layout() const { return layout_; }
  std::size_t seq_len() const { return seq_len_; }
  compute::executor& device() const { return device_; }
  const std::vector<transformer_layer>& layers() const { return layers_; }
  const rotary_tables& rotary() const { return rotary_; }
  std::uint64_t seed() const { return seed_; }

  std::size_t embedding_layer() const { return 0; }
  std::size_t transformer_index(std::size_t i) const { return 1 + i; }
  std::size_t head_layer() const { return layout_.size() - 1; }

  // The head's matrix [V, C]: its own, or the tied token table.
  compute::const_view head_matrix(const model_state& state) const;
  compute::dropout_mask embedding_mask(const micro_batch& batch, bool wanted) const;

  void embed(compute::ops& ops, const model_state& state, const micro_batch& batch,
             std::size_t seq_len, bool dropout, compute::const_view tokens,
             compute::view out) const;
  // Final norm; statistics are kept for backward. mean: none for rms.
  void final_norm(compute::ops& ops, const model_state& state, std::size_t rows,
                  compute::const_view x, compute::view out, compute::view mean,
                  compute::view rstd) const;

  // Rows of logits computed at once: bounds the memory of [rows, V], never touches bits.
  std::size_t head_chunk(std::size_t rows) const;

 private:
  compute::executor& device_;
  description d_;
  model_layout layout_;
  std::size_t seq_len_;
  std::uint64_t seed_;
  std::vector<transformer_layer> layers_;
  rotary_tables rotary_;
};

// Forward without dropout, for up to `rows` tokens at once.
class evaluation {
 public:
  evaluation(const network& net, std::size_t rows);

  // losses[i] of each token (0 where the target is -1). tokens, targets: sequences x seq_len.
  void losses(const model_state& state, std::size_t sequences, std::size_t seq_len,
              std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets,
              std::span<float> losses);

  // logits [sequences x seq_len, V], or only those of each sequence's last token.
  void logits(const model_state& state, std::size_t sequences, std::size_t seq_len,
              std::span<const std::int32_t> tokens, bool last_only, std::span<float> logits);

  std::size_t rows() const { return rows_; }
  std::size_t bytes() const;

 private:
  // Leaves the normed output of the last layer in normed_.
  void forward(const model_state& state, std::size_t sequences, std::size_t seq_len,
               std::span<const std::int32_t> tokens);

  const network& net_;
  std::size_t rows_;
  layer_activations kept_;  // one set, used by every layer in turn
  compute::buffer tokens_, targets_, out_, branch_, normed_, mean_, rstd_, logits_, losses_;
};

}  // namespace troupe::model
