// Sums one layer's gradients of a run of virtual ranks in the fixed tree (tree.hpp), leaf by leaf
// in rising order, as far as this run can: at the end stand the largest nodes of the whole tree
// that lie in the run, one of them, the root, if the run is all of it.
//
// Idea: a stack of finished nodes, as in a binary counter. A finished leaf is pushed; while the two
// topmost nodes are the halves of one node of the whole tree, they are added. So only about log2 of
// the leaves buffers live at once. Not chosen: one buffer a virtual rank (16 copies of the model's
// gradients on a lone worker).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "compute/executor.hpp"
#include "config/base/tree.hpp"

namespace troupe::model {

class gradient_tree {
 public:
  // Closes `run.leaves` leaves from `run.first` on, of a tree over `leaves`.
  gradient_tree(compute::executor& device, std::size_t elements, tree_node run,
                std::uint32_t leaves);

  std::size_t elements() const { return elements_; }

  // The gradient of the leaf that is being filled; opens the next leaf if none is open.
  compute::view leaf();
  // The open leaf is complete: adds it into the tree.
  void close_leaf(compute::ops& ops);
  // After the last leaf of the run; valid until reset().
  bool complete() const { return closed_ == run_.leaves; }
  compute::view node(tree_node which);  // one of complete_nodes(run, leaves)
  compute::view sum();                  // the root; only for a run of all leaves
  // Back to no leaves; memory is kept for the next step.
  void reset();

  std::size_t bytes() const;  // of all buffers ever needed at once
  // How many buffers that will be.
  static std::size_t buffers_needed(tree_node run, std::uint32_t leaves);

 private:
  struct finished {
    tree_node covers;
    compute::buffer values;
  };
  compute::buffer take_buffer();
  void add_top_two(compute::ops& ops);

  compute::executor& device_;
  std::size_t elements_;
  tree_node run_, whole_;
  std::uint32_t closed_ = 0;
  compute::buffer open_;
  std::vector<finished> nodes_;          // from left to right
  std::vector<compute::buffer> spares_;  // allocated and idle
};

}  // namespace troupe::model
