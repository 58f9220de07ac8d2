// The safetensors format, read strictly and written canonically: a length, a JSON header, then the
// tensors' bytes end to end.
//
// A header is input from strangers: it is parsed event by event (never as a tree), nothing is
// allocated before its size was checked against the file, and what the format does not say is
// refused: other fields, duplicate names, offsets that leave a hole or overlap, bytes that no
// tensor owns. Every refusal names file, tensor and reason. Values are never cast silently.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/file.hpp"

namespace troupe::model {

// clang-format off
enum class tensor_type : std::uint8_t {
  boolean, u8, i8, u16, i16, f16, bf16, u32, i32, f32, c64, f64, u64, i64,
  f8_e4m3, f8_e5m2, f8_e8m0, f8_e4m3fnuz, f8_e5m2fnuz, f6_e2m3, f6_e3m2, f4,
};
// clang-format on
std::string_view name_of(tensor_type type);  // "F32", as in the files
unsigned bits_of(tensor_type type);          // per element; the smallest formats share bytes

struct tensor_entry {
  std::string name;
  tensor_type type = tensor_type::f32;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;  // bytes, relative to the start of the data
  std::uint64_t elements() const;
  friend bool operator==(const tensor_entry&, const tensor_entry&) = default;
};

using tensor_metadata = std::map<std::string, std::string>;

struct safetensors_header {
  std::vector<tensor_entry> tensors;  // in the order of their bytes
  tensor_metadata metadata;
  std::uint64_t data_start = 0;  // byte of the file
  const tensor_entry* find(std::string_view name) const;
};

inline constexpr std::uint64_t longest_header_read = 100'000'000;
inline constexpr std::uint64_t longest_header_written = 25'000'000;  // where hub tools stop

// `text` is the JSON alone; `data_bytes` is what follows it in the file. `file` is for messages.
result<safetensors_header> parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                                    const std::string& file);
// Reads and checks length and header; refusals are bad_data (65).
result<safetensors_header> read_safetensors_header(file& from);

// The tensor's bytes as they are; `into` has exactly its size.
status read_tensor(file& from, const safetensors_header& header, const tensor_entry& tensor,
                   std::span<std::byte> into);
// Widens F16 and BF16, takes F32 as it is and F64 where every value is exactly an F32; refuses the
// rest. `into` has exactly the tensor's elements.
status read_as_float(file& from, const safetensors_header& header, const tensor_entry& tensor,
                     std::span<float> into);

struct tensor_shape {
  std::string name;
  tensor_type type = tensor_type::f32;
  std::vector<std::uint64_t> shape;
};

// Length and header for tensors whose bytes follow end to end in this order, padded with spaces so
// that the data starts at a multiple of `alignment` (a power of two, at least 8).
result<std::string> make_safetensors_header(std::span<const tensor_shape> tensors,
                                            const tensor_metadata& metadata,
                                            std::uint64_t alignment = 8);

// The order of exported files: widest type first, then by name.
void sort_for_export(std::vector<tensor_shape>& tensors);

}  // namespace troupe::model
