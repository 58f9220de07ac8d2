#include "model/layout.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::model {
namespace {

class layer_builder {
 public:
  layer_builder(layer_kind kind, std::string name) : layer_{kind, std::move(name), 0, {}} {}

  layer_builder& add(bool wanted, tensor_role role, std::string name,
                     std::vector<std::size_t> shape) {
    if (!wanted) return *this;
    std::size_t size = 1;
    for (std::size_t n : shape) size *= n;
    layer_.tensors.push_back({role, std::move(name), std::move(shape), layer_.elements, size});
    layer_.elements += size;
    return *this;
  }
  layer_layout finish() { return std::move(layer_); }

 private:
  layer_layout layer_;
};

using enum tensor_role;

model_layout gpt2_layout(const description& d) {
  const std::size_t c = d.width, f = d.inner;
  model_layout layout;
  layout.push_back(layer_builder(layer_kind::embedding, "embedding")
                       .add(true, token_table, "transformer.wte.weight", {d.vocabulary, c})
                       .add(true, position_table, "transformer.wpe.weight", {d.positions, c})
                       .finish());
  for (std::size_t i = 0; i < d.layers; ++i) {
    const std::string at = fmt::format("transformer.h.{}.", i);
    layout.push_back(layer_builder(layer_kind::transformer, fmt::format("layer-{:04}", i))
                         .add(true, attention_norm, at + "ln_1.weight", {c})
                         .add(d.bias, attention_norm_bias, at + "ln_1.bias", {c})
                         .add(true, qkv, at + "attn.c_attn.weight", {3 * c, c})
                         .add(d.bias, qkv_bias, at + "attn.c_attn.bias", {3 * c})
                         .add(true, attention_out, at + "attn.c_proj.weight", {c, c})
                         .add(d.bias, attention_out_bias, at + "attn.c_proj.bias", {c})
                         .add(true, mlp_norm, at + "ln_2.weight", {c})
                         .add(d.bias, mlp_norm_bias, at + "ln_2.bias", {c})
                         .add(true, mlp_up, at + "mlp.c_fc.weight", {f, c})
                         .add(d.bias, mlp_up_bias, at + "mlp.c_fc.bias", {f})
                         .add(true, mlp_down, at + "mlp.c_proj.weight", {c, f})
                         .add(d.bias, mlp_down_bias, at + "mlp.c_proj.bias", {c})
                         .finish());
  }
  layout.push_back(layer_builder(layer_kind::head, "head")
                       .add(true, final_norm, "transformer.ln_f.weight", {c})
                       .add(d.bias, final_norm_bias, "transformer.ln_f.bias", {c})
                       .add(!d.tied, head, "lm_head.weight", {d.vocabulary, c})
                       .finish());
  return layout;
}

// Gate and up stand next to each other, and so do query, key and value, so that each pair or triple
// is one matrix product. Biases do not exist in this family (check() refuses them).
model_layout llama_layout(const description& d) {
  const std::size_t c = d.width, f = d.inner, q = d.heads * d.head_dim,
                    kv = d.kv_heads * d.head_dim;
  model_layout layout;
  layout.push_back(layer_builder(layer_kind::embedding, "embedding")
                       .add(true, token_table, "model.embed_tokens.weight", {d.vocabulary, c})
                       .finish());
  for (std::size_t i = 0; i < d.layers; ++i) {
    const std::string at = fmt::format("model.layers.{}.", i);
    layout.push_back(layer_builder(layer_kind::transformer, fmt::format("layer-{:04}", i))
                         .add(true, query, at + "self_attn.q_proj.weight", {q, c})
                         .add(true, key, at + "self_attn.k_proj.weight", {kv, c})
                         .add(true, value, at + "self_attn.v_proj.weight", {kv, c})
                         .add(true, attention_out, at + "self_attn.o_proj.weight", {c, q})
                         .add(true, mlp_gate, at + "mlp.gate_proj.weight", {f, c})
                         .add(true, mlp_up, at + "mlp.up_proj.weight", {f, c})
                         .add(true, mlp_down, at + "mlp.down_proj.weight", {c, f})
                         .add(true, attention_norm, at + "input_layernorm.weight", {c})
                         .add(true, mlp_norm, at + "post_attention_layernorm.weight", {c})
                         .finish());
  }
  layout.push_back(layer_builder(layer_kind::head, "head")
                       .add(true, final_norm, "model.norm.weight", {c})
                       .add(!d.tied, head, "lm_head.weight", {d.vocabulary, c})
                       .finish());
  return layout;
}

}  // namespace

const tensor_info* layer_layout::find(tensor_role role) const {
  const auto at = std::ranges::find(tensors, role, &tensor_info::role);
  return at == tensors.end() ? nullptr : &*at;
}

std::size_t layer_layout::block_size(std::size_t block) const {
  ensure(block < blocks(), "a layer was asked for a block that it does not have");
  return std::min(block_elements, elements - block * block_elements);
}

model_layout make_layout(const description& d) {
  return d.family == family::gpt2 ? gpt2_layout(d) : llama_layout(d);
}

std::size_t parameter_count(const model_layout& layout) {
  std::size_t count = 0;
  for (const layer_layout& layer : layout) count += layer.elements;
  return count;
}

std::size_t multiplied_parameters(const description& d, const model_layout& layout) {
  std::size_t count = d.vocabulary * d.width;  // the head, whoever stores it
  for (const layer_layout& layer : layout) {
    if (layer.kind != layer_kind::transformer) continue;
    for (const tensor_info& t : layer.tensors) {
      if (t.decays()) count += t.size;
    }
  }
  return count;
}

double flops_per_token(const description& d, const model_layout& layout, std::size_t seq_len) {
  return 6.0 * static_cast<double>(multiplied_parameters(d, layout)) +
         12.0 * static_cast<double>(d.layers * d.heads * d.head_dim * seq_len);
}

}  // namespace troupe::model
