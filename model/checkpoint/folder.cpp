#include "model/checkpoint/folder.hpp"

#include <fmt/format.h>

#include <charconv>

#include "model/hub/safetensors.hpp"

namespace troupe::checkpoint {
namespace {

constexpr std::string_view folder_prefix = "step-";
constexpr std::string_view partial_mark = ".partial-";

}  // namespace

std::string_view name_of(value_kind kind) {
  switch (kind) {
    case value_kind::parameters:
      return "parameters";
    case value_kind::first_moments:
      return "first_moments";
    case value_kind::second_moments:
      return "second_moments";
  }
  return "";
}

std::string folder_name(std::uint64_t step) { return fmt::format("{}{:08}", folder_prefix, step); }

std::string file_name(std::string_view layer, value_kind kind) {
  return fmt::format("{}.{}.safetensors", layer, name_of(kind));
}

std::string partial_name(std::uint64_t step, std::string_view who) {
  return fmt::format("{}{}{}", folder_name(step), partial_mark, who);
}

std::optional<folder_identity> parse_folder_name(std::string_view name) {
  if (!name.starts_with(folder_prefix)) return std::nullopt;
  const auto mark = name.find(partial_mark);
  const std::string_view stem = name.substr(0, mark);
  const std::string_view digits = stem.substr(folder_prefix.size());
  folder_identity id;
  const auto [end, problem] = std::from_chars(digits.begin(), digits.end(), id.step);
  if (problem != std::errc{} || end != digits.end()) return std::nullopt;
  if (folder_name(id.step) != stem) return std::nullopt;  // "step-120": not written by us
  id.partial = mark != std::string_view::npos;
  return id;
}

result<std::string> file_header(const model::layer_layout& layer) {
  std::vector<model::tensor_shape> tensors;
  for (const model::tensor_info& t : layer.tensors) {
    tensors.push_back({t.name, model::tensor_type::f32, {t.shape.begin(), t.shape.end()}});
  }
  return model::make_safetensors_header(tensors, {{"format", "pt"}}, data_alignment);
}

}  // namespace troupe::checkpoint
