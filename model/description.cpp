#include "model/description.hpp"

#include <fmt/format.h>

namespace troupe::model {
namespace {

error bad(std::string message) { return {exit_code::bad_config, std::move(message)}; }

}  // namespace

status check(const description& d) {
  if (d.vocabulary == 0 || d.width == 0 || d.inner == 0 || d.layers == 0 || d.heads == 0 ||
      d.kv_heads == 0 || d.head_dim == 0 || d.positions == 0) {
    return bad("every size of the model must be at least 1");
  }
  if (d.vocabulary > 0x7FFFFFFF) return bad("model.vocab_size does not fit into 31 bits");
  if (d.heads % d.kv_heads != 0) {
    return bad(
        fmt::format("model.num_key_value_heads = {} does not divide num_attention_heads = {}",
                    d.kv_heads, d.heads));
  }
  if (d.family == family::gpt2) {
    if (d.kv_heads != d.heads) {
      return bad("model.num_key_value_heads must equal num_attention_heads in the gpt2 family");
    }
    if (d.heads * d.head_dim != d.width) {
      return bad(
          fmt::format("in the gpt2 family heads x head_dim must be the width: {} x {} is not {}",
                      d.heads, d.head_dim, d.width));
    }
    if (d.rope_scaling) return bad("model.rope_scaling belongs to the llama family");
  } else if (d.bias) {
    return bad("model.bias belongs to the gpt2 family: llama matrices have no biases");
  } else if (d.head_dim % 2 != 0) {
    return bad(fmt::format("model.head_dim = {} is odd, but rotary embedding turns pairs; try {}",
                           d.head_dim, d.head_dim + 1));
  }
  if (d.head_dim > 256) return bad(fmt::format("model.head_dim = {} is above 256", d.head_dim));
  return done{};
}

std::size_t default_inner(family f, std::size_t width) {
  if (f == family::gpt2) return 4 * width;
  return (8 * width / 3 + 255) / 256 * 256;
}

const char* name_of(family f) { return f == family::gpt2 ? "gpt2" : "llama"; }

}  // namespace troupe::model
