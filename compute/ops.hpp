// What a device can compute. One interface; `cpu/` implements it, a CUDA backend fits behind the
// same header.
//
// Letters used throughout: B sequences, T tokens of a sequence, rows = B * T tokens of a
// micro-batch, C width, V vocabulary, H query heads, K key/value heads, D elements of a head, F
// inner width. Everything is row-major without padding: activations [rows, C], matrices [out, in].
//
// The contract is bits (docs/numerics.md). In numerics class `cpu-chain` every element of a matrix
// product is *one chain* of fused multiply-adds in rising k, starting at +0 or at the old value;
// every gradient of a parameter is one chain over the tokens in order; row reductions have a fixed
// layout of 8 lanes and a fixed fold; every transcendental is our own polynomial. So the number of
// threads, the tile sizes, the place of a row and the size of a micro-batch cannot show in any
// result.
//
// Backward for inputs and backward for weights are separate operations: pipelines run them at
// different times, and weight gradients of a micro-batch that spans virtual ranks are taken range
// by range. Calls are queued in order on the device that the surrounding executor job runs on; a
// host result is valid once that job has completed (executor.hpp).
#pragma once

#include <cstdint>

#include "compute/buffer.hpp"

namespace troupe::compute {

// What a stream of random numbers is for; part of its key (random.hpp).
enum class random_purpose : std::uint32_t {
  initialization = 1,
  data_order = 2,
  dropout_embedding = 3,
  dropout_attention = 4,
  dropout_attention_branch = 5,
  dropout_mlp_branch = 6,
  sampling = 7,
};

// Which elements dropout removes. A row r of a micro-batch belongs to sequence first_sequence + r /
// T, and the decision for an element follows from (seed, purpose, step, sequence, layer, element)
// alone, where element = (r % T) * C + column, or (head * T + query) * T + key for attention
// probabilities.
struct dropout_mask {
  float probability = 0;  // 0: nothing is removed and nothing is drawn
  std::uint64_t seed = 0;
  random_purpose purpose = random_purpose::dropout_embedding;
  std::uint64_t step = 0;  // of the step being computed, 1-based
  std::uint32_t layer = 0;
  std::uint64_t first_sequence =
      0;  // position of the micro-batch's first sequence in the global batch
};

enum class norm_kind : std::uint8_t { layer, rms };

// y[rows, out] = x[rows, in] * w[out, in]^T, then + bias[out], then residual[rows, out] + that.
// With `gelu` y gets the value before the activation and gelu[rows, out] the activated one (tanh
// form).
struct linear_args {
  std::size_t rows, in, out;
  const_view x, w;
  const_view bias{};      // none: nothing is added
  const_view residual{};  // none: nothing is added; may be y itself
  view y{};
  view gelu{};  // none: no activation
};

// dx[rows, in] = dy[rows, out] * w[out, in]; with `gelu_input` [rows, in], times the derivative of
// GELU there.
struct linear_backward_input_args {
  std::size_t rows, in, out;
  const_view dy, w;
  const_view gelu_input{};
  view dx{};
};

// dw[out, in] (+)= dy[rows, out]^T * x[rows, in], db[out] (+)= sum of dy over rows; one chain over
// the rows. `fresh`: the chains start at +0, else at the old values (the next micro-batch of the
// same virtual rank).
struct linear_backward_weight_args {
  std::size_t rows, in, out;
  const_view dy, x;
  view dw;
  view db{};  // none: the layer has no bias
  bool fresh = true;
};

// y = (x - mean) * rstd * gain + bias (layer), y = x * rstd * gain (rms); statistics kept for
// backward.
struct norm_args {
  norm_kind kind;
  std::size_t rows, width;
  float epsilon;
  const_view x, gain, bias;  // bias: none for rms, or for a layer norm without biases
  view y;
  view mean;  // [rows]; none for rms
  view rstd;  // [rows]
};

// dx = residual + d(norm)/dx * dy. residual [rows, width] is the gradient that went around the
// branch.
struct norm_backward_input_args {
  norm_kind kind;
  std::size_t rows, width;
  const_view dy, x, gain, mean, rstd;
  const_view residual{};  // none: nothing is added; may be dx itself
  view dx{};
};

struct norm_backward_weight_args {
  norm_kind kind;
  std::size_t rows, width;
  const_view dy, x, mean, rstd;
  view dgain;
  view dbias{};
  bool fresh = true;
};

// Rotates element pairs (j, j + D/2) of the first `heads` heads of each row by the angles of the
// row's position (row % T). cosines, sines: [T, D/2]. `inverse` rotates back: the backward
// operation.
struct rotate_args {
  std::size_t rows, seq_len, heads, head_dim;
  std::size_t row_stride;  // elements from one row of x to the next; heads come first in a row
  const_view cosines, sines;
  bool inverse = false;
  view x{};  // in place
};

// Causal attention without a T x T matrix in memory. qkv[rows, (H + 2K) D] holds q heads, then k,
// then v; query head h reads key/value head h / (H / K). Scores are scaled by 1 / sqrt(D). Keys are
// taken in blocks of 64 positions for ever: the block enters the bits (running maximum and
// rescaling happen once a block).
struct attention_args {
  std::size_t sequences, seq_len, heads, kv_heads, head_dim;
  const_view qkv;
  dropout_mask dropout{};  // on the probabilities
  view out{};              // [rows, H D]
  view lse{};              // [B, H, T] natural log of the sum of exponentials; kept for backward
};

struct attention_backward_args {
  std::size_t sequences, seq_len, heads, kv_heads, head_dim;
  const_view qkv, out, lse, dout;
  dropout_mask dropout{};
  view dqkv{};  // overwritten, same layout as qkv
};

// out[rows, F] = silu(gate) * up, gate_up[rows, 2F] holds gate, then up, in each row.
struct swiglu_args {
  std::size_t rows, inner;
  const_view gate_up;
  view out;
};
struct swiglu_backward_args {
  std::size_t rows, inner;
  const_view dout, gate_up;
  view dgate_up;
};

// out[r] = table[tokens[r]] + positions[r % T], then dropout.
struct embedding_args {
  std::size_t rows, seq_len, width, vocabulary;
  const_view tokens;       // int32 [rows]
  const_view table;        // [V, C]
  const_view positions{};  // [P, C]; none: no learned positions
  dropout_mask dropout{};
  view out{};
};
// dtable[tokens[r]] += dout[r] and dpositions[r % T] += dout[r], rows in order; dout is already
// behind dropout. Both always add to the old values: the caller clears them at the start of a
// virtual rank.
struct embedding_backward_args {
  std::size_t rows, seq_len, width, vocabulary;
  const_view tokens, dout;
  view dtable;
  view dpositions{};
};

// out = residual + dropout(x); without residual just dropout(x). Its own backward: dx =
// dropout(dy).
struct dropout_args {
  std::size_t rows, seq_len, width;
  const_view x;
  const_view residual{};
  dropout_mask dropout{};
  view out{};
};

// losses[r] = log(sum exp(logits[r])) - logits[r][target]; logits become their own gradient
// (softmax minus one-hot; a sum over tokens, not a mean). target -1: the row counts for nothing,
// loss 0 and gradient 0. `gradient` false leaves the logits as they are.
struct cross_entropy_args {
  std::size_t rows, vocabulary;
  const_view targets;  // int32 [rows]
  view logits;         // [rows, V], in place
  view losses;         // float32 [rows]
  bool gradient = true;
};

// AdamW on one run of elements, g = gradient * scale:
// m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; p = p - lr ((m/c1) / (sqrt(v/c2) + eps) + decay p).
// The exact order of roundings stands with the implementation and in its scalar reference.
struct adamw_args {
  std::size_t size;
  const_view gradient;
  view parameters, first_moment, second_moment;
  float scale, lr, beta1, beta2, epsilon, weight_decay;
  float correction1, correction2;  // 1 - beta^updates, this update included
};

class ops {
 public:
  virtual ~ops() = default;

  virtual void linear(const linear_args&) = 0;
  virtual void linear_backward_input(const linear_backward_input_args&) = 0;
  virtual void linear_backward_weight(const linear_backward_weight_args&) = 0;
  virtual void norm(const norm_args&) = 0;
  virtual void norm_backward_input(const norm_backward_input_args&) = 0;
  virtual void norm_backward_weight(const norm_backward_weight_args&) = 0;
  virtual void rotate(const rotate_args&) = 0;
  virtual void attention(const attention_args&) = 0;
  virtual void attention_backward(const attention_backward_args&) = 0;
  virtual void swiglu(const swiglu_args&) = 0;
  virtual void swiglu_backward(const swiglu_backward_args&) = 0;
  virtual void embedding(const embedding_args&) = 0;
  virtual void embedding_backward(const embedding_backward_args&) = 0;
  virtual void dropout(const dropout_args&) = 0;
  virtual void cross_entropy(const cross_entropy_args&) = 0;
  virtual void adamw(const adamw_args&) = 0;

  virtual void fill(view out, float value) = 0;
  virtual void copy(const_view from,
                    view to) = 0;  // same size and type; between host and device too
  virtual void add(const_view a, const_view b, view out) = 0;  // out = a + b; out may be a or b
  // out[0] (float64) = sum of squares in double: 8 lanes by index mod 8, then a fixed fold.
  virtual void sum_squares(const_view x, view out) = 0;
  // out[0] (float64) = out[0] + x[0] + x[1] ... in order, in double.
  virtual void add_in_order(const_view x, view out) = 0;
};

}  // namespace troupe::compute
