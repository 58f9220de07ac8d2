#include "model/gradient_tree.hpp"

#include <algorithm>

#include "config/base/error.hpp"

namespace troupe::model {
namespace {

// Whether two neighbours are the halves of one node of the tree `at`: walks down from its root to
// the node that it could be.
bool are_halves(tree_node left, tree_node right, tree_node at) {
  const std::uint32_t end = right.first + right.leaves;
  while (at.first < left.first || at.first + at.leaves > end) {
    const auto [low, high] = halves(at);
    if (left.first < high.first && end > high.first) return false;  // no node holds just the two
    at = end <= high.first ? low : high;
  }
  return halves(at) == std::pair(left, right);
}

}  // namespace

gradient_tree::gradient_tree(compute::executor& device, std::size_t elements, tree_node run,
                             std::uint32_t leaves)
    : device_(device), elements_(elements), run_(run), whole_{0, leaves} {
  ensure(run.leaves >= 1 && run.first + run.leaves <= leaves,
         "a gradient tree needs at least one leaf, and none beyond the last");
}

compute::buffer gradient_tree::take_buffer() {
  if (spares_.empty()) return device_.allocate(elements_, compute::dtype::float32);
  compute::buffer taken = std::move(spares_.back());
  spares_.pop_back();
  return taken;
}

compute::view gradient_tree::leaf() {
  ensure(!complete(), "a gradient tree was asked for a leaf beyond its last one");
  if (!open_) open_ = take_buffer();
  return open_.all();
}

void gradient_tree::add_top_two(compute::ops& ops) {
  finished right = std::move(nodes_.back());
  nodes_.pop_back();
  finished& left = nodes_.back();
  ops.add(left.values.all(), right.values.all(), left.values.all());
  left.covers.leaves += right.covers.leaves;
  spares_.push_back(std::move(right.values));
}

void gradient_tree::close_leaf(compute::ops& ops) {
  ensure(static_cast<bool>(open_), "a gradient leaf was closed that was never opened");
  nodes_.push_back({{run_.first + closed_, 1}, std::move(open_)});
  open_ = {};
  ++closed_;
  while (nodes_.size() >= 2 &&
         are_halves(nodes_[nodes_.size() - 2].covers, nodes_.back().covers, whole_)) {
    add_top_two(ops);
  }
}

compute::view gradient_tree::node(tree_node which) {
  ensure(complete(), "a gradient sum was read before all leaves were in");
  const auto at = std::ranges::find(nodes_, which, &finished::covers);
  ensure(at != nodes_.end(), "a gradient tree was asked for a node that it does not complete");
  return at->values.all();
}

compute::view gradient_tree::sum() { return node(whole_); }

void gradient_tree::reset() {
  if (open_) spares_.push_back(std::move(open_));
  open_ = {};
  for (finished& n : nodes_) spares_.push_back(std::move(n.values));
  nodes_.clear();
  closed_ = 0;
}

std::size_t gradient_tree::buffers_needed(tree_node run, std::uint32_t leaves) {
  std::vector<tree_node> nodes;
  std::size_t most = 0;
  for (std::uint32_t i = 0; i < run.leaves; ++i) {
    nodes.push_back({run.first + i, 1});
    most = std::max(most, nodes.size());
    while (nodes.size() >= 2 && are_halves(nodes[nodes.size() - 2], nodes.back(), {0, leaves})) {
      nodes[nodes.size() - 2].leaves += nodes.back().leaves;
      nodes.pop_back();
    }
  }
  return most;
}

std::size_t gradient_tree::bytes() const {
  return (spares_.size() + nodes_.size() + (open_ ? 1 : 0)) * elements_ *
         compute::bytes_of(compute::dtype::float32);
}

}  // namespace troupe::model
