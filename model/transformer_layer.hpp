// One transformer layer of either family: x + attention(norm(x)), then + mlp(norm(.)).
//
// Forward keeps what backward needs in `layer_activations`. Backward for inputs writes the
// gradients at the outputs of the layer's matrices into `layer_gradients`; backward for weights
// reads both and can run later, row range by row range. Shapes: rows = B T tokens; letters as in
// compute/ops.hpp.
#pragma once

#include "compute/executor.hpp"
#include "model/description.hpp"
#include "model/layout.hpp"
#include "model/micro_batch.hpp"

namespace troupe::model {

// The angles of rotary embedding, [T, D / 2] each; empty for gpt2.
struct rotary_tables {
  compute::buffer cosines, sines;
};
rotary_tables make_rotary_tables(compute::executor& device, const description& d,
                                 std::size_t seq_len);

struct layer_activations {
  layer_activations(compute::executor& device, const description& d, std::size_t rows);

  compute::buffer input;             // [rows, C] the residual stream that came in
  compute::buffer attention_normed;  // [rows, C]
  compute::buffer qkv;               // [rows, (H + 2K) D], rotated
  compute::buffer attended;          // [rows, H D]
  compute::buffer lse;               // [B, H, T]
  compute::buffer middle;            // [rows, C] after the attention branch
  compute::buffer mlp_normed;        // [rows, C]
  compute::buffer up;                // gpt2: [rows, F] before GELU; llama: [rows, 2F] gate, up
  compute::buffer activated;         // [rows, F]
  compute::buffer mean1, rstd1, mean2, rstd2;  // [rows]; means only for gpt2
  std::size_t bytes() const;
};

struct layer_gradients {
  layer_gradients(compute::executor& device, const description& d, std::size_t rows);

  compute::buffer
      mlp_out;  // [rows, C] at the output of mlp_down; only with dropout, else as above it
  compute::buffer activated;         // [rows, F] llama only
  compute::buffer up;                // like layer_activations::up
  compute::buffer mlp_normed;        // [rows, C]
  compute::buffer middle;            // [rows, C]
  compute::buffer attention_out;     // [rows, C] at the output of attention_out; only with dropout
  compute::buffer attended;          // [rows, H D]
  compute::buffer qkv;               // [rows, (H + 2K) D]
  compute::buffer attention_normed;  // [rows, C]
  std::size_t bytes() const;
};

class transformer_layer {
 public:
  // `index`: place among the transformer layers, part of the dropout keys.
  transformer_layer(const description& d, const layer_layout& layout, std::size_t index,
                    std::uint64_t seed);

  // Reads kept.input, writes the rest of kept and out[rows, C]. `branch` [rows, C] is scratch for
  // dropout. dropout false: evaluation.
  void forward(compute::ops& ops, compute::const_view parameters, const rotary_tables& rotary,
               const micro_batch& batch, std::size_t seq_len, bool dropout, layer_activations& kept,
               compute::view branch, compute::view out) const;

  // output_gradient [rows, C] came from above; input_gradient [rows, C] goes on below and is other
  // memory.
  void backward_input(compute::ops& ops, compute::const_view parameters,
                      const rotary_tables& rotary, const micro_batch& batch, std::size_t seq_len,
                      const layer_activations& kept, layer_gradients& at,
                      compute::const_view output_gradient, compute::view input_gradient) const;

  // Continues the chains of one virtual rank in `gradient`, the layer's flat vector, with the rows
  // of `range`.
  void backward_weight(compute::ops& ops, const leaf_range& range, const layer_activations& kept,
                       const layer_gradients& at, compute::const_view output_gradient,
                       compute::view gradient) const;

 private:
  compute::const_view take(compute::const_view flat, tensor_role role) const;
  compute::view take(compute::view flat, tensor_role role) const;
  template <class View>
  View qkv_matrix(View flat) const;
  template <class View>
  View up_matrix(View flat) const;
  // out = residual + dropout(x * matrix^T + bias): the end of both branches.
  struct branch_shape {
    std::size_t rows, seq_len, in;
  };
  struct branch_tensors {
    compute::const_view x, matrix, bias, residual;
    compute::view scratch, out;
  };
  void branch_out(compute::ops& ops, const branch_shape& shape, const branch_tensors& tensors,
                  const compute::dropout_mask& mask) const;
  void rotate_heads(compute::ops& ops, const rotary_tables& rotary, std::size_t rows,
                    std::size_t seq_len, bool inverse, compute::view qkv) const;
  compute::dropout_mask mask(compute::random_purpose purpose, const micro_batch& batch,
                             bool wanted) const;
  bool gpt2() const { return d_.family == family::gpt2; }
  compute::norm_kind norm_kind() const {
    return gpt2() ? compute::norm_kind::layer : compute::norm_kind::rms;
  }
  std::size_t qkv_width() const { return (d_.heads + 2 * d_.kv_heads) * d_.head_dim; }
  std::size_t heads_width() const { return d_.heads * d_.head_dim; }
  std::size_t up_width() const { return gpt2() ? d_.inner : 2 * d_.inner; }

  description d_;
  layer_layout layout_;
  std::size_t index_;
  std::uint64_t seed_;
};

}  // namespace troupe::model
