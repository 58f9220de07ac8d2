// Where every parameter lives. A model is a list of layers in model order: the embedding, each
// transformer layer, the head. Each layer's tensors stand end to end, unpadded, in one flat vector
// of floats in canonical order (the order of Hugging Face's names, matrices as [out, in]), and that
// vector is cut into blocks of 2^18 elements: the unit of placement, hashing and norms. Layout and
// blocks follow from the description alone, never from who holds what.
//
// A tied token table belongs to the embedding; the head then holds only the final norm.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/description.hpp"

namespace troupe::model {

inline constexpr std::size_t block_elements = std::size_t{1} << 18;

enum class tensor_role : std::uint8_t {
  token_table,     // [V, C]
  position_table,  // [P, C], gpt2
  attention_norm,  // gain [C]
  attention_norm_bias,
  qkv,  // [(H + 2K) D, C]: gpt2's one matrix; llama's three follow each other
  qkv_bias,
  query,
  key,
  value,
  attention_out,  // [C, H D]
  attention_out_bias,
  mlp_norm,
  mlp_norm_bias,
  mlp_up,  // gpt2: [F, C]; llama: the second half of gate_up
  mlp_up_bias,
  mlp_gate,  // [F, C], llama; mlp_up follows it directly
  mlp_down,  // [C, F]
  mlp_down_bias,
  final_norm,
  final_norm_bias,
  head,  // [V, C], only if untied
};

struct tensor_info {
  tensor_role role;
  std::string name;                                  // Hugging Face's name
  std::vector<std::size_t> shape;                    // as stored: matrices [out, in], row-major
  std::size_t offset = 0;                            // in the layer's flat vector [elements]
  std::size_t size = 0;                              // [elements]
  bool decays() const { return shape.size() >= 2; }  // weight decay touches matrices only
};

enum class layer_kind : std::uint8_t { embedding, transformer, head };

struct layer_layout {
  layer_kind kind;
  std::string name;  // "embedding", "layer-0003", "head": also in file names
  std::size_t elements = 0;
  std::vector<tensor_info> tensors;

  const tensor_info* find(tensor_role role) const;  // nullptr: this layer has none
  std::size_t blocks() const { return (elements + block_elements - 1) / block_elements; }
  std::size_t block_size(std::size_t block) const;  // the last one is shorter
};

using model_layout = std::vector<layer_layout>;

// Requires check(d).
model_layout make_layout(const description& d);

std::size_t parameter_count(const model_layout& layout);  // tied tensors once

// Parameters of matrices that multiply: the head included even if tied, look-up tables not.
std::size_t multiplied_parameters(const description& d, const model_layout& layout);

// Training FLOPs of one token, forward and backward: 6 x multiplied parameters + 12 L H D T.
double flops_per_token(const description& d, const model_layout& layout, std::size_t seq_len);

}  // namespace troupe::model
