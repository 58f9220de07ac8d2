#include "comm/sealed.hpp"

#include <algorithm>

#include "config/base/hash.hpp"

namespace troupe::comm {
namespace {

// mark (8), length of the content (4), number (4), hash of all but itself (16), content.
void put(bytes& to, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i)));
}

std::uint64_t get(bytes_view from, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::to_integer<std::uint64_t>(from[at + i]) << (8 * i);
  }
  return value;
}

std::array<std::byte, 16> hash_of(bytes_view head, bytes_view content) {
  hasher all;
  all.add(head);
  all.add(content);
  return all.finish().canonical();
}

}  // namespace

bytes seal(std::uint64_t mark, std::uint32_t number, bytes_view content) {
  ensure(content.size() <= max_sealed_bytes - seal_bytes, "too much was to be sealed");
  bytes record;
  record.reserve(seal_bytes + content.size());
  put(record, mark, 8);
  put(record, content.size(), 4);
  put(record, number, 4);
  const auto hash = hash_of(record, content);
  record.insert(record.end(), hash.begin(), hash.end());
  record.insert(record.end(), content.begin(), content.end());
  return record;
}

std::optional<std::size_t> sealed_size(std::uint64_t mark, bytes_view beginning) {
  if (beginning.size() < seal_bytes || get(beginning, 0, 8) != mark) return std::nullopt;
  const std::size_t size = seal_bytes + get(beginning, 8, 4);
  return size <= max_sealed_bytes ? std::optional(size) : std::nullopt;
}

result<unsealed> unseal(std::uint64_t mark, bytes_view record) {
  const auto size = sealed_size(mark, record);
  if (!size) return error{exit_code::bad_data, "it is of another kind or of another version"};
  if (*size != record.size()) return error{exit_code::bad_data, "it is cut short or too long"};
  const bytes_view content = record.subspan(seal_bytes);
  if (!std::ranges::equal(hash_of(record.first(16), content), record.subspan(16, 16)))
    return error{exit_code::bad_data, "it was damaged on the way"};
  return unsealed{static_cast<std::uint32_t>(get(record, 12, 4)),
                  bytes(content.begin(), content.end())};
}

}  // namespace troupe::comm
