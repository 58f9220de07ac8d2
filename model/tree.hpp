// The one order in which partial sums are added: a binary tree over n leaves that splits at the
// largest power of two below n. Whoever holds a run of leaves can add what is complete in it; the
// result has the same bits for every way of spreading the leaves over members.
#pragma once

#include <bit>
#include <cstddef>
#include <span>

namespace troupe::model {

// Leaves in the left half of a tree of n >= 2 leaves.
constexpr std::size_t left_leaves(std::size_t n) { return std::bit_floor(n - 1); }

// Sum over the tree; 0 for no values.
constexpr double tree_sum(std::span<const double> values) {
  if (values.empty()) return 0;
  if (values.size() == 1) return values[0];
  const std::size_t left = left_leaves(values.size());
  return tree_sum(values.first(left)) + tree_sum(values.subspan(left));
}

}  // namespace troupe::model
