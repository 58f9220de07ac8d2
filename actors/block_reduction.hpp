// Completes the sum of one block at its primary: the nodes that other members have sent, and those
// that this member has computed, are added in the one order of the tree.
//
// Idea: the additions are planned on the loop's thread as a short list, and one job carries them
// out. What arrived stands in slots of ours, so every addition can be made in place in one of them;
// the slot that holds the end result becomes the gradient sum by changing hands, without a copy. If
// this member has computed the root itself, the root is the sum where it lies.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compute/ops.hpp"
#include "config/base/tree.hpp"

namespace troupe::actors {

struct block_addition {
  compute::view from, into;  // into = left + right, in the order of the tree
  bool from_is_left = false;
};

struct tree_input {
  compute::view values;
  bool writable = false;  // a slot: may hold a sum
};

struct planned_sum {
  std::vector<block_addition> additions;
  tree_input root;
};

// `find` gives a node that is there, or nothing. Requires that the nodes cover the whole tree.
planned_sum plan_sum(tree_node whole,
                     const std::function<std::optional<tree_input>(tree_node)>& find);

void carry_out(compute::ops& ops, const block_addition& addition);

}  // namespace troupe::actors
