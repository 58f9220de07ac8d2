#include "config/base/tree.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <map>

namespace troupe {
namespace {

using testing::ElementsAre;

TEST(tree, a_holder_of_all_leaves_completes_the_root) {
  EXPECT_THAT(complete_nodes(0, 7, 7), ElementsAre(tree_node{0, 7}));
  EXPECT_THAT(complete_nodes(0, 1, 1), ElementsAre(tree_node{0, 1}));
}

TEST(tree, a_holder_of_some_leaves_completes_the_largest_nodes_in_them) {
  EXPECT_THAT(complete_nodes(0, 4, 8), ElementsAre(tree_node{0, 4}));
  EXPECT_THAT(complete_nodes(3, 4, 8),
              ElementsAre(tree_node{3, 1}, tree_node{4, 2}, tree_node{6, 1}));
  EXPECT_THAT(complete_nodes(4, 3, 7), ElementsAre(tree_node{4, 3}));
  EXPECT_TRUE(complete_nodes(3, 0, 8).empty());
}

// For every width and every cut into three ranges: the nodes partition the leaves, and adding them
// where two halves meet reaches the root, so a primary can always complete the tree.
TEST(tree, nodes_of_neighbours_complete_the_tree) {
  for (std::uint32_t n = 1; n <= 33; ++n) {
    for (std::uint32_t a = 0; a <= n; ++a) {
      for (std::uint32_t b = a; b <= n; ++b) {
        std::map<tree_node, int> have;
        for (const auto& [first, end] : {std::pair{0u, a}, std::pair{a, b}, std::pair{b, n}}) {
          for (const tree_node& node : complete_nodes(first, end - first, n)) ++have[node];
        }
        const std::function<bool(tree_node)> complete = [&](tree_node at) {
          if (have.contains(at)) return true;
          if (at.leaves == 1) return false;
          const auto [left, right] = halves(at);
          return complete(left) && complete(right);
        };
        std::uint32_t leaves = 0;
        for (const auto& [node, times] : have) {
          EXPECT_EQ(times, 1);
          leaves += node.leaves;
        }
        EXPECT_EQ(leaves, n);
        EXPECT_TRUE(complete({0, n})) << n << " leaves cut at " << a << " and " << b;
      }
    }
  }
}

TEST(tree, knows_its_nodes) {
  for (std::uint32_t n = 1; n <= 20; ++n) {
    std::size_t nodes = 0;
    for (std::uint32_t first = 0; first <= n; ++first) {
      for (std::uint32_t leaves = 0; leaves <= n + 1; ++leaves) {
        const bool right =
            leaves > 0 && first + leaves <= n && complete_nodes(first, leaves, n).size() == 1;
        EXPECT_EQ(is_node({first, leaves}, n), right) << first << "+" << leaves << " of " << n;
        nodes += right ? 1 : 0;
      }
    }
    EXPECT_EQ(nodes, 2 * n - 1);
  }
  EXPECT_FALSE(is_node({0, ~0u}, 8));
  EXPECT_FALSE(is_node({~0u, 1}, 8));
  EXPECT_FALSE(is_node({0, 1}, 0));
}

}  // namespace
}  // namespace troupe
