// A run of consecutive sequences of one step's global batch that is computed at once, and the
// virtual ranks it touches. A micro-batch is a matter of memory only: it may be a part of a virtual
// rank or span several; the weight-gradient operations take its rows range by range, so that every
// virtual rank keeps a chain of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::model {

struct micro_batch {
  std::uint64_t step = 0;          // being computed, 1-based
  std::size_t first_sequence = 0;  // position in the global batch
  std::size_t sequences = 0;
};

// The rows of a micro-batch that belong to one virtual rank.
struct leaf_range {
  std::size_t first_row, rows;  // in the micro-batch
  bool opens;                   // holds the virtual rank's first row: chains start at +0
  bool closes;                  // holds its last row: the leaf is complete
};

// In rising order. `sequences_per_rank` is the share of one virtual rank.
inline std::vector<leaf_range> leaf_ranges(const micro_batch& batch, std::size_t sequences_per_rank,
                                           std::size_t seq_len) {
  std::vector<leaf_range> ranges;
  const std::size_t end = batch.first_sequence + batch.sequences;
  for (std::size_t at = batch.first_sequence; at < end;) {
    const std::size_t next = std::min(end, (at / sequences_per_rank + 1) * sequences_per_rank);
    ranges.push_back({(at - batch.first_sequence) * seq_len, (next - at) * seq_len,
                      at % sequences_per_rank == 0, next % sequences_per_rank == 0});
    at = next;
  }
  return ranges;
}

}  // namespace troupe::model
