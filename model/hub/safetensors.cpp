#include "model/hub/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "config/base/json.hpp"
#include "model/hub/safetensors_events.hpp"

namespace troupe::model {
namespace {

struct type_row {
  std::string_view name;
  unsigned bits;
};
constexpr std::array<type_row, 22> types{{
    {"BOOL", 8},    {"U8", 8},      {"I8", 8},          {"U16", 16},        {"I16", 16},
    {"F16", 16},    {"BF16", 16},   {"U32", 32},        {"I32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"U64", 64},        {"I64", 64},        {"F8_E4M3", 8},
    {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6},
    {"F6_E3M2", 6}, {"F4", 4},
}};
static_assert(types.size() == static_cast<std::size_t>(tensor_type::f4) + 1);

error bad(const std::string& file, std::string_view what) {
  return {exit_code::bad_data, fmt::format("{}: {}", file, what)};
}

error bad_tensor(const std::string& file, const std::string& tensor, std::string_view what) {
  return bad(file, fmt::format("tensor {}: {}", json_quoted(tensor), what));
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (std::uint64_t n : shape) {
    if (text.size() > 1) text += ',';
    text += std::to_string(n);
  }
  return text + "]";
}

// Shape x width in bytes; false where that overflows 64 bits or does not fill whole bytes.
bool bytes_of_shape(tensor_type type, std::span<const std::uint64_t> shape, std::uint64_t& bytes) {
  std::uint64_t bits = bits_of(type);
  for (std::uint64_t n : shape) {
    if (__builtin_mul_overflow(bits, n, &bits)) return false;
  }
  bytes = bits / 8;
  return bits % 8 == 0;
}

// The tensors, in the order of their bytes, cover [0, data_bytes) exactly.
status check_tiling(const safetensors_header& header, std::uint64_t data_bytes,
                    const std::string& file) {
  std::uint64_t covered = 0;
  for (const tensor_entry& t : header.tensors) {
    if (t.begin != covered) {
      return bad_tensor(
          file, t.name,
          t.begin > covered
              ? fmt::format("begins at byte {}, which leaves a hole from byte {} on", t.begin,
                            covered)
              : fmt::format("begins at byte {}, inside of the tensor before it (which ends at {})",
                            t.begin, covered));
    }
    covered = t.end;
    if (covered > data_bytes) {
      return bad_tensor(
          file, t.name,
          fmt::format("ends at byte {}, but the file has only {} bytes of data: it is "
                      "cut short",
                      t.end, data_bytes));
    }
  }
  if (covered == data_bytes) return done{};
  return bad(file, fmt::format("{} bytes follow after the last tensor", data_bytes - covered));
}

float widened(tensor_type type, std::uint16_t half) {
  if (type == tensor_type::bf16) return std::bit_cast<float>(std::uint32_t{half} << 16);
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16;
  const std::uint32_t exponent = (half >> 10) & 31u, fraction = half & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | fraction << 13);
  if (exponent == 0) {  // zero or subnormal: fraction x 2^-24, exact in a float
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

}  // namespace

std::string_view name_of(tensor_type type) { return types[static_cast<std::size_t>(type)].name; }
unsigned bits_of(tensor_type type) { return types[static_cast<std::size_t>(type)].bits; }

std::uint64_t tensor_entry::elements() const { return (end - begin) * 8 / bits_of(type); }

const tensor_entry* safetensors_header::find(std::string_view name) const {
  const auto at = std::ranges::find(tensors, name, &tensor_entry::name);
  return at == tensors.end() ? nullptr : &*at;
}

// The order of these checks is part of the format's description; the first that fails is reported.
result<safetensors_header> parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                                    const std::string& file) {
  if (!text.starts_with('{')) return bad(file, "the header does not start with '{'");
  auto parsed = read_header_events(text);
  if (!parsed) return bad(file, parsed.failure().message);

  safetensors_header header;
  header.metadata = std::move(parsed->metadata);
  for (raw_entry& raw : parsed->tensors) {
    const auto type = std::ranges::find(types, raw.type, &type_row::name);
    if (type == types.end()) {
      return bad_tensor(file, raw.name, fmt::format("unknown dtype {}", json_quoted(raw.type)));
    }
    tensor_entry t{std::move(raw.name), static_cast<tensor_type>(type - types.begin()),
                   std::move(raw.shape), raw.offsets[0], raw.offsets[1]};
    if (t.begin > t.end) {
      return bad_tensor(file, t.name,
                        fmt::format("begins at byte {}, after its end {}", t.begin, t.end));
    }
    std::uint64_t bytes = 0;
    if (!bytes_of_shape(t.type, t.shape, bytes)) {
      return bad_tensor(file, t.name,
                        fmt::format("shape {} of {} is not a whole number of bytes below 2^61",
                                    shape_text(t.shape), name_of(t.type)));
    }
    if (bytes != t.end - t.begin) {
      return bad_tensor(file, t.name,
                        fmt::format("shape {} of {} needs {} bytes, but data_offsets give it {}",
                                    shape_text(t.shape), name_of(t.type), bytes, t.end - t.begin));
    }
    header.tensors.push_back(std::move(t));
  }
  std::ranges::stable_sort(header.tensors, {},
                           [](const tensor_entry& t) { return std::pair(t.begin, t.end); });
  if (auto s = check_tiling(header, data_bytes, file); !s) return s.failure();
  return header;
}

result<safetensors_header> read_safetensors_header(file& from) {
  auto size = from.size();
  if (!size) return size.failure();
  if (*size < 8) {
    return bad(from.path(),
               fmt::format("has {} bytes, but a safetensors file has at least 8", *size));
  }
  std::uint64_t length = 0;
  if (auto s = read_exactly(from, 0, std::as_writable_bytes(std::span(&length, 1))); !s) {
    return s.failure();
  }
  if (length > longest_header_read) {
    return bad(from.path(), fmt::format("the header would have {} bytes; at most {} are allowed",
                                        length, longest_header_read));
  }
  if (length > *size - 8) {
    return bad(from.path(),
               fmt::format("the header has {} bytes, but the file ends after {} of them: "
                           "it is cut short",
                           length, *size - 8));
  }
  std::string text(length, '\0');
  if (auto s = read_exactly(from, 8, std::as_writable_bytes(std::span(text))); !s)
    return s.failure();
  auto header = parse_safetensors_header(text, *size - 8 - length, from.path());
  if (header) header->data_start = 8 + length;
  return header;
}

status read_tensor(file& from, const safetensors_header& header, const tensor_entry& tensor,
                   std::span<std::byte> into) {
  ensure(into.size() == tensor.end - tensor.begin,
         "tensor " + tensor.name + " was to be read into memory of another size");
  return read_exactly(from, header.data_start + tensor.begin, into);
}

status read_as_float(file& from, const safetensors_header& header, const tensor_entry& tensor,
                     std::span<float> into) {
  ensure(into.size() == tensor.elements(),
         "tensor " + tensor.name + " was to be read into memory of another size");
  const unsigned width = bits_of(tensor.type) / 8;
  switch (tensor.type) {
    case tensor_type::f32:
      return read_tensor(from, header, tensor, std::as_writable_bytes(into));
    case tensor_type::f16:
    case tensor_type::bf16:
    case tensor_type::f64:
      break;
    default:
      return bad_tensor(from.path(), tensor.name,
                        fmt::format("dtype {} is not a float that can be read without a cast",
                                    name_of(tensor.type)));
  }
  std::array<std::byte, 1 << 16> piece;  // bounded memory, whatever the tensor's size
  const std::size_t step = piece.size() / width;
  for (std::size_t at = 0; at < into.size(); at += step) {
    const std::size_t count = std::min(step, into.size() - at);
    const auto bytes = std::span(piece).first(count * width);
    if (auto s = read_exactly(from, header.data_start + tensor.begin + at * width, bytes); !s)
      return s;
    for (std::size_t i = 0; i < count; ++i) {
      if (width == 2) {
        std::uint16_t half;
        std::memcpy(&half, &piece[2 * i], 2);
        into[at + i] = widened(tensor.type, half);
        continue;
      }
      double wide;
      std::memcpy(&wide, &piece[8 * i], 8);
      const bool fits = std::isinf(wide) || (std::abs(wide) <= std::numeric_limits<float>::max() &&
                                             static_cast<double>(static_cast<float>(wide)) == wide);
      if (!fits) {
        return bad_tensor(
            from.path(), tensor.name,
            fmt::format("element {} = {:.17g} is an F64 that no F32 equals; convert the "
                        "file first",
                        at + i, wide));
      }
      into[at + i] = static_cast<float>(wide);
    }
  }
  return done{};
}

result<std::string> make_safetensors_header(std::span<const tensor_shape> tensors,
                                            const tensor_metadata& metadata,
                                            std::uint64_t alignment) {
  ensure(alignment >= 8 && std::has_single_bit(alignment),
         "the data of a safetensors file was to start at an odd place");
  json_line json;
  if (!metadata.empty()) {
    json.begin_object("__metadata__");
    for (const auto& [key, value] : metadata) json.text(key, value);
    json.end();
  }
  std::uint64_t at = 0;
  for (const tensor_shape& t : tensors) {
    std::uint64_t bytes = 0;
    ensure(bytes_of_shape(t.type, t.shape, bytes), "tensor " + t.name + " has an impossible shape");
    json.begin_object(t.name)
        .text("dtype", name_of(t.type))
        .raw("shape", shape_text(t.shape))
        .raw("data_offsets", fmt::format("[{},{}]", at, at + bytes))
        .end();
    at += bytes;
  }
  std::string text = json.finish();
  text.pop_back();  // the newline of a line
  text.append((alignment - (8 + text.size()) % alignment) % alignment, ' ');
  if (text.size() > longest_header_written) {
    return error{exit_code::bad_data,
                 fmt::format("a safetensors header of {} bytes is more than readers accept ({})",
                             text.size(), longest_header_written)};
  }
  const std::uint64_t length = text.size();
  std::string head(8, '\0');
  std::memcpy(head.data(), &length, 8);
  return head + text;
}

void sort_for_export(std::vector<tensor_shape>& tensors) {
  std::ranges::sort(tensors, [](const tensor_shape& a, const tensor_shape& b) {
    return std::tuple(bits_of(b.type), std::string_view(a.name)) <
           std::tuple(bits_of(a.type), std::string_view(b.name));
  });
}

}  // namespace troupe::model
