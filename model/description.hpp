// What a model is: the numbers that its shapes and its mathematics follow from, for both families.
// Names of tensors and shapes are those of Hugging Face's GPT-2 and Llama. Says nothing about where
// it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "config/base/error.hpp"

namespace troupe::model {

enum class family : std::uint8_t { gpt2, llama };

struct rope_scaling {  // Llama-3 kind
  double factor, low_freq_factor, high_freq_factor;
  std::size_t original_positions;
  friend bool operator==(const rope_scaling&, const rope_scaling&) = default;
};

struct description {
  model::family family = family::llama;
  std::size_t vocabulary = 0;
  std::size_t width = 0;      // C
  std::size_t inner = 0;      // F
  std::size_t layers = 0;     // L, transformer layers
  std::size_t heads = 0;      // H
  std::size_t kv_heads = 0;   // K
  std::size_t head_dim = 0;   // D
  std::size_t positions = 0;  // P, longest window; rows of GPT-2's position table
  double norm_epsilon = 1e-5;
  double rope_theta = 10000;
  std::optional<model::rope_scaling> rope_scaling;
  bool tied = false;  // the head multiplies with the token embedding
  bool bias = false;
  double initializer_range = 0.02;
  double dropout = 0;
  friend bool operator==(const description&, const description&) = default;
};

// Refuses shapes that cannot be computed (heads that do not divide, an odd head size under
// rotation, ...).
status check(const description& d);

// The family's rule for the inner width: 4 C for GPT-2; for Llama int(8 C / 3) rounded up to 256.
std::size_t default_inner(family f, std::size_t width);

const char* name_of(family f);

}  // namespace troupe::model
