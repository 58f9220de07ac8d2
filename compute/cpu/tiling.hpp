// How operations other than matrix products cut their work into tiles. Tiles are never visible in
// results: a row is computed by one thread, and a parameter's chain over the tokens too.
#pragma once

#include <algorithm>
#include <cstddef>

#include "compute/buffer.hpp"
#include "compute/cpu/thread_pool.hpp"

namespace troupe::compute::cpu {

// About 10 us of element-wise work: small enough to balance, large enough to hide the hand-out.
inline constexpr std::size_t elements_per_tile = 16384;

// work(row) for every row.
template <class Work>
void for_rows(thread_pool& pool, std::size_t rows, std::size_t width, const Work& work) {
  const std::size_t step =
      std::max<std::size_t>(1, elements_per_tile / std::max<std::size_t>(1, width));
  pool.parallel_for((rows + step - 1) / step, [&](std::size_t tile, int) {
    const std::size_t end = std::min(rows, (tile + 1) * step);
    for (std::size_t row = tile * step; row < end; ++row) work(row);
  });
}

// work(begin, end) for consecutive runs of elements; runs begin at multiples of 8.
template <class Work>
void for_runs(thread_pool& pool, std::size_t size, std::size_t run, const Work& work) {
  pool.parallel_for((size + run - 1) / run, [&](std::size_t tile, int) {
    work(tile * run, std::min(size, (tile + 1) * run));
  });
}

// work(begin, end) for a few runs of columns a thread, each as wide as possible, because every run
// walks over all rows.
template <class Work>
void for_columns(thread_pool& pool, std::size_t width, const Work& work) {
  const std::size_t runs = pool.size() == 1 ? 1 : 2 * static_cast<std::size_t>(pool.size());
  for_runs(pool, width, ((width + runs - 1) / runs + 15) / 16 * 16, work);
}

// The elements of a view that an operation needs `size` of.
template <class T>
const T* elements(const const_view& v, std::size_t size) {
  ensure(v.size >= size, "an operation got a view that is too short");
  return v.host<T>().data();
}
template <class T>
T* elements(const view& v, std::size_t size) {
  ensure(v.size >= size, "an operation got a view that is too short");
  return v.host<T>().data();
}
// Null if there is none.
template <class T>
const T* optional_elements(const const_view& v, std::size_t size) {
  return v ? elements<T>(v, size) : nullptr;
}
template <class T>
T* optional_elements(const view& v, std::size_t size) {
  return v ? elements<T>(v, size) : nullptr;
}

}  // namespace troupe::compute::cpu
