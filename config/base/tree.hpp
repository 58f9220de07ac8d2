// The one order in which partial sums are added: a binary tree over n leaves that splits at the
// largest power of two below n. Whoever holds a run of leaves can add what is complete in it; the
// result has the same bits for every way of spreading the leaves over members.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace troupe {

// Leaves in the left half of a tree of n >= 2 leaves.
constexpr std::size_t left_leaves(std::size_t n) { return std::bit_floor(n - 1); }

// Sum over the tree; 0 for no values.
constexpr double tree_sum(std::span<const double> values) {
  if (values.empty()) return 0;
  if (values.size() == 1) return values[0];
  const std::size_t left = left_leaves(values.size());
  return tree_sum(values.first(left)) + tree_sum(values.subspan(left));
}

// A node of such a tree: it stands for the leaves [first, first + leaves).
struct tree_node {
  std::uint32_t first = 0, leaves = 0;
  friend auto operator<=>(const tree_node&, const tree_node&) = default;
};

// The two nodes whose sum is `whole`, which has at least two leaves.
constexpr std::pair<tree_node, tree_node> halves(tree_node whole) {
  const auto left = static_cast<std::uint32_t>(left_leaves(whole.leaves));
  return {{whole.first, left}, {whole.first + left, whole.leaves - left}};
}

// Is this a node of the tree over n leaves? For what strangers say.
constexpr bool is_node(tree_node node, std::uint32_t n) {
  if (node.leaves == 0) return false;
  tree_node at{0, n};
  while (node.leaves < at.leaves) {
    const auto [left, right] = halves(at);
    at = node.first < right.first ? left : right;
  }
  return at == node;
}

// The largest nodes of the tree over n leaves that lie in [first, first + count), from left to
// right: what the holder of these leaves can add by itself.
inline std::vector<tree_node> complete_nodes(std::uint32_t first, std::uint32_t count,
                                             std::uint32_t n) {
  std::vector<tree_node> found;
  const auto visit = [&](auto& self, tree_node at) -> void {
    const std::uint32_t end = at.first + at.leaves;
    if (at.leaves == 0 || end <= first || first + count <= at.first) return;
    if (first <= at.first && end <= first + count) {
      found.push_back(at);
      return;
    }
    const auto [left, right] = halves(at);
    self(self, left);
    self(self, right);
  };
  visit(visit, {0, n});
  return found;
}

}  // namespace troupe
