#include "actors/block_reduction.hpp"

#include "config/base/error.hpp"

namespace troupe::actors {

planned_sum plan_sum(tree_node whole,
                     const std::function<std::optional<tree_input>(tree_node)>& find) {
  planned_sum plan;
  const auto complete = [&](auto& self, tree_node at) -> tree_input {
    if (const std::optional<tree_input> there = find(at)) return *there;
    ensure(at.leaves > 1, "a block was to be summed before all its gradients had arrived");
    const auto [low, high] = halves(at);
    const tree_input left = self(self, low), right = self(self, high);
    // Two halves of one member would have been added by it.
    ensure(left.writable || right.writable, "a member left two of its own nodes apart");
    plan.additions.push_back(left.writable ? block_addition{right.values, left.values, false}
                                           : block_addition{left.values, right.values, true});
    return left.writable ? left : right;
  };
  plan.root = complete(complete, whole);
  return plan;
}

void carry_out(compute::ops& ops, const block_addition& addition) {
  if (addition.from_is_left) {
    ops.add(addition.from, addition.into, addition.into);
  } else {
    ops.add(addition.into, addition.from, addition.into);
  }
}

}  // namespace troupe::actors
