// Memory of one device. A `buffer` is owned and never copied; a `view` is a run of its elements,
// passed by value to operations. Views know their device and element type, so that an operation
// refuses memory that it cannot read instead of crashing in it. Shapes belong to the operation, not
// to the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "config/base/error.hpp"

namespace troupe::compute {

enum class device_kind : std::uint8_t { cpu, cuda };
enum class dtype : std::uint8_t { float32, float64, bfloat16, int32 };

constexpr std::size_t bytes_of(dtype type) {
  switch (type) {
    case dtype::float64:
      return 8;
    case dtype::bfloat16:
      return 2;
    case dtype::float32:
    case dtype::int32:
      return 4;
  }
  return 0;
}

template <class T>
constexpr dtype dtype_of();
template <>
constexpr dtype dtype_of<float>() {
  return dtype::float32;
}
template <>
constexpr dtype dtype_of<double>() {
  return dtype::float64;
}
template <>
constexpr dtype dtype_of<std::int32_t>() {
  return dtype::int32;
}

struct const_view;

// `size` elements that may be written. A default-made view is empty and means "none".
struct view {
  void* data = nullptr;
  std::size_t size = 0;  // elements
  dtype type = dtype::float32;
  device_kind device = device_kind::cpu;

  explicit operator bool() const { return data != nullptr; }
  view part(std::size_t offset, std::size_t count) const {
    ensure(offset <= size && count <= size - offset, "a view's part lies outside of it");
    return {static_cast<std::byte*>(data) + offset * bytes_of(type), count, type, device};
  }
  view from(std::size_t offset) const { return part(offset, size - offset); }
  // Host access; only for memory of the CPU device and only with the right element type.
  template <class T>
  std::span<T> host() const {
    ensure(device == device_kind::cpu, "device memory was touched from the host");
    ensure(type == dtype_of<T>(), "a view was read as another element type");
    return {static_cast<T*>(data), size};
  }
};

struct const_view {
  const void* data = nullptr;
  std::size_t size = 0;  // elements
  dtype type = dtype::float32;
  device_kind device = device_kind::cpu;

  const_view() = default;
  const_view(const void* where, std::size_t count, dtype element, device_kind home)
      : data(where), size(count), type(element), device(home) {}
  const_view(const view& v)  // NOLINT: a writable view may be read
      : data(v.data), size(v.size), type(v.type), device(v.device) {}

  explicit operator bool() const { return data != nullptr; }
  const_view part(std::size_t offset, std::size_t count) const {
    ensure(offset <= size && count <= size - offset, "a view's part lies outside of it");
    return {static_cast<const std::byte*>(data) + offset * bytes_of(type), count, type, device};
  }
  const_view from(std::size_t offset) const { return part(offset, size - offset); }
  template <class T>
  std::span<const T> host() const {
    ensure(device == device_kind::cpu, "device memory was touched from the host");
    ensure(type == dtype_of<T>(), "a view was read as another element type");
    return {static_cast<const T*>(data), size};
  }
};

// Views of memory that somebody else owns on the host: tests, host-side staging.
template <class T>
view host_view(std::span<T> values) {
  return {values.data(), values.size(), dtype_of<T>(), device_kind::cpu};
}
template <class T>
const_view host_view(std::span<const T> values) {
  return {values.data(), values.size(), dtype_of<T>(), device_kind::cpu};
}

// Owned memory, aligned to 64 bytes at least, zero at first. Move only.
class buffer {
 public:
  using release_function = std::function<void(void*)>;

  buffer() = default;
  buffer(view memory, release_function release) : memory_(memory), release_(std::move(release)) {}
  buffer(buffer&& other) noexcept { swap(other); }
  buffer& operator=(buffer&& other) noexcept {
    buffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~buffer() {
    if (memory_.data != nullptr && release_) release_(memory_.data);
  }

  explicit operator bool() const { return memory_.data != nullptr; }
  std::size_t size() const { return memory_.size; }
  std::size_t bytes() const { return memory_.size * bytes_of(memory_.type); }
  view all() { return memory_; }
  const_view all() const { return memory_; }
  view part(std::size_t offset, std::size_t count) { return memory_.part(offset, count); }
  const_view part(std::size_t offset, std::size_t count) const {
    return memory_.part(offset, count);
  }

 private:
  void swap(buffer& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(release_, other.release_);
  }
  view memory_;
  release_function release_;
};

}  // namespace troupe::compute
