#include "compute/cpu/chain_product.hpp"

#include <algorithm>
#include <cstring>

#include "compute/cpu/chain_kernel.hpp"
#include "compute/cpu/instruction_set.hpp"
#include "compute/cpu/scratch.hpp"

namespace troupe::compute::cpu {
namespace {

// Sizes below are speed alone.
constexpr std::size_t packed_left_floats = 96 * 1024;  // a tile of A: a share of the second cache
constexpr std::size_t packed_right_floats = 4 * 1024 * 1024;  // B at a time, however large it is
constexpr std::size_t most_tile_rows = 256;
constexpr std::size_t fewest_tile_rows = 48;  // below, a panel of B is read too often
constexpr std::size_t tasks_a_thread = 4;     // so that a disturbed thread is made up for

std::size_t pieces_of(std::size_t size, std::size_t piece) { return (size + piece - 1) / piece; }

// Cuts `size` into `pieces` runs whose lengths are multiples of `unit`, all but the last equal.
std::size_t even_piece(std::size_t size, std::size_t pieces, std::size_t unit) {
  return pieces == 0 ? 0 : pieces_of(pieces_of(size, pieces), unit) * unit;
}

struct plan {
  std::size_t chunk_panels;  // panels of B packed at a time
  std::size_t tile_rows;
  std::size_t task_panels;  // panels of B in one task
};

plan plan_for(const chain_product& p, const chain_kernel& kernel, std::size_t threads) {
  const std::size_t k = std::max<std::size_t>(p.k, 1);
  const std::size_t panels = pieces_of(p.n, kernel.columns);
  const std::size_t most_panels =
      std::max<std::size_t>(packed_right_floats / (k * kernel.columns), 1);
  plan cut;
  cut.chunk_panels = even_piece(panels, pieces_of(panels, most_panels), 1);
  const std::size_t most_rows =
      std::clamp(packed_left_floats / k, fewest_tile_rows, most_tile_rows);
  const std::size_t wanted = threads == 1 ? 1 : threads * tasks_a_thread;
  const std::size_t tiles =
      std::max(pieces_of(p.m, most_rows), std::min(wanted, pieces_of(p.m, fewest_tile_rows)));
  cut.tile_rows = even_piece(p.m, tiles, kernel.rows);
  const std::size_t row_tasks = pieces_of(p.m, cut.tile_rows);
  const std::size_t column_tasks = std::min(pieces_of(wanted, row_tasks), cut.chunk_panels);
  cut.task_panels = even_piece(cut.chunk_panels, column_tasks, 1);
  return cut;
}

// One task: a tile of rows against a run of packed panels of B.
class tile_product {
 public:
  tile_product(const chain_product& p, const chain_kernel& kernel, std::size_t row,
               std::size_t rows)
      : p_(p), kernel_(kernel), row_(row), rows_(rows) {
    static thread_local scratch left_memory;
    static thread_local scratch sums_memory;
    const std::size_t padded_rows = pieces_of(rows, kernel.rows) * kernel.rows;
    left_ = left_memory.take(padded_rows * p.k);
    sums_ = sums_memory.take(padded_rows * kernel.columns);
    pack_panels(p.a, row, rows, p.k, kernel.rows, left_);
  }

  // `next` is the panel after this one, or null: it is fetched bit by bit while this one is used.
  void run(const float* panel, const float* next, std::size_t column) {
    const std::size_t columns = std::min(kernel_.columns, p_.n - column);
    const std::size_t vectors = pieces_of(columns, kernel_.lanes);
    const std::size_t depth = even_piece(p_.k, pieces_of(p_.k, kernel_.depth), 1);
    const std::size_t steps = pieces_of(rows_, kernel_.rows) * p_.k;
    const std::size_t soon_step =
        next == nullptr || steps == 0 ? 0 : pieces_of(p_.k * kernel_.columns, steps);
    const float* soon = next == nullptr ? panel : next;
    std::size_t k = 0;
    do {
      const std::size_t now = std::min(depth, p_.k - k);
      const bool last = k + now == p_.k;
      for (std::size_t band = 0; band < rows_; band += band_rows) {
        const std::size_t end = std::min(band + band_rows, rows_);
        if (k == 0 && p_.start != nullptr) {
          if (columns < kernel_.columns) copy_start(band, end, column, columns);
          fetch(p_.start, end, std::min(end + band_rows, rows_), column);
        }
        if (last) fetch(p_.finish_reads, band, end, column);
        for (std::size_t i = band; i < end; i += kernel_.rows) {
          const std::size_t rows = std::min(kernel_.rows, end - i);
          float* const sums = sums_ + i * kernel_.columns;
          const float* start = sums;
          std::size_t start_stride = kernel_.columns;
          if (k == 0 && p_.start == nullptr) start = nullptr;
          if (k == 0 && p_.start != nullptr && columns == kernel_.columns) {
            start = p_.start + (row_ + i) * p_.n + column;
            start_stride = p_.n;
          }
          kernel_.product[rows - 1][vectors - 1](now, left_ + i * p_.k + k * kernel_.rows,
                                                 panel + k * kernel_.columns, start, start_stride,
                                                 sums, soon, soon_step);
          soon += soon_step * now;
        }
        if (last) {
          p_.finish({sums_ + band * kernel_.columns, kernel_.columns, row_ + band, end - band,
                     column, columns});
        }
      }
      k += now;
    } while (k < p_.k);
  }

 private:
  static constexpr std::size_t line_floats = 16;
  // Loaded and finished together: few enough that the stores drain while the next band is computed.
  static constexpr std::size_t band_rows = 8;

  // At the edge of C, where whole vectors would read beyond a row.
  void copy_start(std::size_t begin, std::size_t end, std::size_t column, std::size_t columns) {
    for (std::size_t i = begin; i < end; ++i) {
      copy_floats(p_.start + (row_ + i) * p_.n + column, columns, sums_ + i * kernel_.columns);
    }
  }

  // What will be read of an [m, n] matrix: lines that no hardware prefetcher foresees.
  void fetch(const float* from, std::size_t begin, std::size_t end, std::size_t column) const {
    if (from == nullptr) return;
    for (std::size_t i = begin; i < end; ++i) {
      const float* place = from + (row_ + i) * p_.n + column;
      for (std::size_t c = 0; c < kernel_.columns; c += line_floats) __builtin_prefetch(place + c);
    }
  }

  const chain_product& p_;
  const chain_kernel& kernel_;
  std::size_t row_;
  std::size_t rows_;
  float* left_;
  float* sums_;
};

}  // namespace

void multiply(thread_pool& pool, const chain_product& p) {
  if (p.m == 0 || p.n == 0) return;
  const chain_kernel& kernel = active_instruction_set() == instruction_set::avx512
                                   ? avx512_chain_kernel()
                                   : avx2_chain_kernel();
  const plan cut = plan_for(p, kernel, static_cast<std::size_t>(pool.size()));
  const std::size_t panel_floats = p.k * kernel.columns;
  const std::size_t all_panels = pieces_of(p.n, kernel.columns);
  static thread_local scratch right_memory;
  float* const right = right_memory.take(cut.chunk_panels * panel_floats);
  const std::size_t row_tasks = pieces_of(p.m, cut.tile_rows);

  for (std::size_t first = 0; first < all_panels; first += cut.chunk_panels) {
    const std::size_t panels = std::min(cut.chunk_panels, all_panels - first);
    const auto column_of = [&](std::size_t panel) { return (first + panel) * kernel.columns; };
    pool.parallel_for(panels, [&](std::size_t panel, int) {
      const std::size_t column = column_of(panel);
      pack_panels(p.b, column, std::min(kernel.columns, p.n - column), p.k, kernel.columns,
                  right + panel * panel_floats);
    });
    const std::size_t column_tasks = pieces_of(panels, cut.task_panels);
    pool.parallel_for(row_tasks * column_tasks, [&](std::size_t task, int) {
      const std::size_t row = task / column_tasks * cut.tile_rows;
      const std::size_t begin = task % column_tasks * cut.task_panels;
      const std::size_t end = std::min(begin + cut.task_panels, panels);
      tile_product tile(p, kernel, row, std::min(cut.tile_rows, p.m - row));
      for (std::size_t panel = begin; panel < end; ++panel) {
        const float* here = right + panel * panel_floats;
        tile.run(here, panel + 1 < end ? here + panel_floats : nullptr, column_of(panel));
      }
    });
  }
}

}  // namespace troupe::compute::cpu
