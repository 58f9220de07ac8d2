// Sums one layer's gradients of the virtual ranks in the fixed tree (tree.hpp), leaf by leaf in
// rising order.
//
// Idea: a stack of finished nodes, as in a binary counter. A finished leaf is pushed; while the two
// topmost nodes are equally large, they are added. At the end the rest is added from the right,
// which is the same as splitting n at the largest power of two below n. So at most log2(n) + 2
// buffers live at once. Not chosen: one buffer a virtual rank (16 copies of the model's gradients
// on a lone worker).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "compute/executor.hpp"

namespace troupe::model {

class gradient_tree {
 public:
  gradient_tree(compute::executor& device, std::size_t elements, std::size_t leaves);

  std::size_t elements() const { return elements_; }

  // The gradient of the leaf that is being filled; opens the next leaf if none is open.
  compute::view leaf();
  // The open leaf is complete: adds it into the tree.
  void close_leaf(compute::ops& ops);
  // After the last leaf: the sum over all of them. Valid until reset().
  compute::view sum();
  // Back to no leaves; memory is kept for the next step.
  void reset();

  std::size_t bytes() const;  // of all buffers ever needed at once

 private:
  struct node {
    compute::buffer values;
    std::size_t leaves;
  };
  compute::buffer take_buffer();
  void add_top_two(compute::ops& ops);

  compute::executor& device_;
  std::size_t elements_;
  std::size_t leaves_;  // of the whole tree
  std::size_t closed_ = 0;
  compute::buffer open_;
  std::vector<node> nodes_;              // finished, from left to right
  std::vector<compute::buffer> spares_;  // allocated and idle
};

}  // namespace troupe::model
