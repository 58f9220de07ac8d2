// What a checkpoint's folder looks like. One safetensors file for each layer and kind of value,
// with the layer's tensors in canonical order; the header is padded so that the data starts at a
// multiple of 4 KiB. So block b of a layer stands at data_start + b * 2^20, blocks never share a
// page, and several writers can fill one file. Names, headers and sizes follow from the model
// alone: the same for every step, world and run.
//
// A save works in "step-00000120.partial-..." and gives the folder its final name only when all its
// files are durable; then manifest.json makes it a checkpoint. A final name without a manifest is a
// save that died between the two.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/base/error.hpp"
#include "model/layout.hpp"

namespace troupe::checkpoint {

enum class value_kind : std::uint8_t { parameters, first_moments, second_moments };
inline constexpr std::array all_kinds{value_kind::parameters, value_kind::first_moments,
                                      value_kind::second_moments};
std::string_view name_of(value_kind kind);

inline constexpr std::uint64_t data_alignment = 4096;
inline constexpr std::string_view manifest_name = "manifest.json";

std::string folder_name(std::uint64_t step);                     // "step-00000120"
std::string file_name(std::string_view layer, value_kind kind);  // "head.parameters.safetensors"
std::string partial_name(std::uint64_t step, std::string_view who);  // "step-00000120.partial-who"

struct folder_identity {
  std::uint64_t step = 0;
  bool partial = false;
};
std::optional<folder_identity> parse_folder_name(std::string_view name);

// Length and header of the layer's files (the same for all kinds); its size is the data's start.
result<std::string> file_header(const model::layer_layout& layer);

constexpr std::uint64_t block_offset(std::uint64_t data_start, std::size_t block) {
  return data_start + std::uint64_t{block} * model::block_elements * sizeof(float);
}

}  // namespace troupe::checkpoint
