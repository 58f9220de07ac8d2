// Fills, copies, sums of two, and the two reductions that cross a whole block of parameters or a
// batch.

#include <algorithm>
#include <cstring>

#include "compute/cpu/kernels.hpp"
#include "compute/cpu/lanes.hpp"
#include "compute/cpu/tiling.hpp"

namespace troupe::compute::cpu {
namespace {

template <class T>
void fill_with(thread_pool& pool, view out, T value) {
  T* to = elements<T>(out, out.size);
  for_runs(pool, out.size, elements_per_tile,
           [&](std::size_t begin, std::size_t end) { std::fill(to + begin, to + end, value); });
}

template <class T>
void add_all(thread_pool& pool, const_view a, const_view b, view out) {
  const T* left = elements<T>(a, out.size);
  const T* right = elements<T>(b, out.size);
  T* to = elements<T>(out, out.size);
  for_runs(pool, out.size, elements_per_tile, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) to[i] = left[i] + right[i];
  });
}

template <class T>
void append(const_view x, double* total) {
  double sum = *total;
  for (const T value : x.host<T>()) sum += static_cast<double>(value);
  *total = sum;
}

}  // namespace

void fill(thread_pool& pool, view out, float value) {
  switch (out.type) {
    case dtype::float32:
      return fill_with<float>(pool, out, value);
    case dtype::float64:
      return fill_with<double>(pool, out, value);
    default:
      ensure(false, "fill knows float32 and float64 only");
  }
}

void copy(thread_pool& pool, const_view from, view to) {
  ensure(from.size == to.size && from.type == to.type, "copy needs two views of one size and type");
  ensure(from.device == device_kind::cpu && to.device == device_kind::cpu,
         "the CPU device copies host memory only");
  const std::size_t width = bytes_of(to.type);
  for_runs(pool, to.size, elements_per_tile, [&](std::size_t begin, std::size_t end) {
    std::memcpy(static_cast<std::byte*>(to.data) + begin * width,
                static_cast<const std::byte*>(from.data) + begin * width, (end - begin) * width);
  });
}

void add(thread_pool& pool, const_view a, const_view b, view out) {
  ensure(a.size == out.size && b.size == out.size, "add needs views of one size");
  switch (out.type) {
    case dtype::float32:
      return add_all<float>(pool, a, b, out);
    case dtype::float64:
      return add_all<double>(pool, a, b, out);
    default:
      ensure(false, "add knows float32 and float64 only");
  }
}

void sum_squares(thread_pool&, const_view x, view out) {
  const float* from = elements<float>(x, x.size);
  double* to = elements<double>(out, 1);
  const hn::FixedTag<double, 4> wide;
  const hn::FixedTag<float, 4> half;
  // Lanes 0-3 and 4-7. A product of two floats is exact in double.
  auto low = hn::Zero(wide), high = hn::Zero(wide);
  for_lanes(x.size, [&](std::size_t i, auto which) {
    const auto v = load(from + i, which);
    const auto a = hn::PromoteTo(wide, hn::LowerHalf(half, v));
    const auto b = hn::PromoteTo(wide, hn::UpperHalf(half, v));
    low = hn::MulAdd(a, a, low);
    high = hn::MulAdd(b, b, high);
  });
  alignas(32) double lane[8];
  hn::Store(low, wide, lane);
  hn::Store(high, wide, lane + 4);
  *to = fold(lane);
}

void add_in_order(thread_pool&, const_view x, view out) {
  double* total = elements<double>(out, 1);
  switch (x.type) {
    case dtype::float32:
      return append<float>(x, total);
    case dtype::float64:
      return append<double>(x, total);
    default:
      ensure(false, "add_in_order knows float32 and float64 only");
  }
}

}  // namespace troupe::compute::cpu
