#include "model/gradient_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "config/base/tree.hpp"

namespace troupe::model {
namespace {

constexpr std::size_t elements = 37;

// The documented order, written down without tree.hpp: the largest power of two below n goes left.
float documented_sum(std::span<const float> leaves) {
  if (leaves.size() == 1) return leaves[0];
  std::size_t left = 1;
  while (2 * left < leaves.size()) left *= 2;
  return documented_sum(leaves.first(left)) + documented_sum(leaves.subspan(left));
}

// [leaf][element], of sizes so different that every order of adding has other bits.
std::vector<std::vector<float>> random_leaves(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  std::vector<std::vector<float>> leaves(count, std::vector<float>(elements));
  for (auto& leaf : leaves) {
    for (float& value : leaf) value = draw(random) * std::exp2(std::round(4 * draw(random)));
  }
  return leaves;
}

void fill_leaf(gradient_tree& tree, compute::executor& device, const std::vector<float>& values) {
  device.run([&](compute::ops& ops) {
    ops.copy(compute::host_view(std::span(values)), tree.leaf());
    tree.close_leaf(ops);
  });
}

void expect_documented_sums(gradient_tree& tree, const std::vector<std::vector<float>>& leaves) {
  const std::span<const float> sums = tree.sum().host<float>();
  ASSERT_EQ(sums.size(), elements);
  for (std::size_t e = 0; e < elements; ++e) {
    std::vector<float> column;
    for (const auto& leaf : leaves) column.push_back(leaf[e]);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(sums[e]),
              std::bit_cast<std::uint32_t>(documented_sum(column)))
        << "element " << e << " of " << leaves.size() << " leaves";
  }
}

TEST(gradient_tree, adds_in_the_documented_order_for_every_number_of_leaves) {
  const auto device = compute::make_cpu_executor(1);
  for (std::uint32_t n = 1; n <= 33; ++n) {
    gradient_tree tree(*device, elements, {0, n}, n);
    const auto leaves = random_leaves(n, n);
    for (const auto& leaf : leaves) fill_leaf(tree, *device, leaf);
    expect_documented_sums(tree, leaves);
  }
}

TEST(gradient_tree, keeps_few_buffers_and_uses_them_again) {
  const auto device = compute::make_cpu_executor(1);
  for (std::uint32_t n = 1; n <= 33; ++n) {
    gradient_tree tree(*device, elements, {0, n}, n);
    const std::size_t most = (std::bit_width(n - 1) + 2) * elements * sizeof(float);
    std::size_t after_first_step = 0;
    for (unsigned step = 1; step <= 3; ++step) {
      const auto leaves = random_leaves(n, step);
      for (const auto& leaf : leaves) {
        fill_leaf(tree, *device, leaf);
        EXPECT_LE(tree.bytes(), most) << n << " leaves";
      }
      expect_documented_sums(tree, leaves);
      tree.reset();
      if (step == 1) after_first_step = tree.bytes();
      EXPECT_EQ(tree.bytes(), after_first_step);
    }
    EXPECT_GE(after_first_step, elements * sizeof(float));
  }
}

TEST(gradient_tree, forgets_an_open_leaf_when_reset) {
  const auto device = compute::make_cpu_executor(1);
  gradient_tree tree(*device, elements, {0, 2}, 2);
  const auto leaves = random_leaves(2, 4);
  fill_leaf(tree, *device, leaves[1]);
  tree.leaf().host<float>()[0] = 5;
  tree.reset();
  for (const auto& leaf : leaves) fill_leaf(tree, *device, leaf);
  expect_documented_sums(tree, leaves);
}

// Every run of every tree: the nodes are those that tree.hpp names, each with the documented sum of
// its own leaves, which is what a tree over only these leaves gives.
TEST(gradient_tree, completes_the_largest_nodes_of_any_run_of_leaves) {
  const auto device = compute::make_cpu_executor(1);
  for (std::uint32_t n = 1; n <= 11; ++n) {
    const auto leaves = random_leaves(n, n);
    for (std::uint32_t first = 0; first < n; ++first) {
      for (std::uint32_t count = 1; first + count <= n; ++count) {
        gradient_tree tree(*device, elements, {first, count}, n);
        for (std::uint32_t i = 0; i < count; ++i) {
          EXPECT_FALSE(tree.complete());
          fill_leaf(tree, *device, leaves[first + i]);
        }
        EXPECT_TRUE(tree.complete());
        EXPECT_EQ(tree.bytes(),
                  gradient_tree::buffers_needed({first, count}, n) * elements * sizeof(float));
        std::size_t covered = 0;
        for (const tree_node& node : complete_nodes(first, count, n)) {
          gradient_tree alone(*device, elements, {0, node.leaves}, node.leaves);
          for (std::uint32_t i = 0; i < node.leaves; ++i) {
            fill_leaf(alone, *device, leaves[node.first + i]);
          }
          ASSERT_TRUE(std::ranges::equal(tree.node(node).host<float>(), alone.sum().host<float>()))
              << "leaves " << node.first << " + " << node.leaves << " of " << n;
          covered += node.leaves;
        }
        EXPECT_EQ(covered, count);
      }
    }
  }
}

TEST(tree, sums_doubles_in_the_same_order) {
  const std::vector<double> five{1e16, 1.0, -1e16, 1.0, 3.0};
  EXPECT_EQ(tree_sum(five), ((1e16 + 1.0) + (-1e16 + 1.0)) + 3.0);
  EXPECT_EQ(tree_sum(std::span(five).first(3)), (1e16 + 1.0) + -1e16);
  EXPECT_EQ(tree_sum(std::span(five).first(1)), 1e16);
  EXPECT_EQ(tree_sum({}), 0.0);
  EXPECT_EQ(left_leaves(2), 1u);
  EXPECT_EQ(left_leaves(4), 2u);
  EXPECT_EQ(left_leaves(5), 4u);
  EXPECT_EQ(left_leaves(33), 32u);
}

}  // namespace
}  // namespace troupe::model
