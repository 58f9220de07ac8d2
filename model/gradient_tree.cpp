#include "model/gradient_tree.hpp"

#include "config/base/error.hpp"

namespace troupe::model {

gradient_tree::gradient_tree(compute::executor& device, std::size_t elements, std::size_t leaves)
    : device_(device), elements_(elements), leaves_(leaves) {
  ensure(leaves >= 1, "a gradient tree needs at least one leaf");
}

compute::buffer gradient_tree::take_buffer() {
  if (spares_.empty()) return device_.allocate(elements_, compute::dtype::float32);
  compute::buffer taken = std::move(spares_.back());
  spares_.pop_back();
  return taken;
}

compute::view gradient_tree::leaf() {
  ensure(closed_ < leaves_, "a gradient tree was asked for a leaf beyond its last one");
  if (!open_) open_ = take_buffer();
  return open_.all();
}

void gradient_tree::add_top_two(compute::ops& ops) {
  node right = std::move(nodes_.back());
  nodes_.pop_back();
  node& left = nodes_.back();
  ops.add(left.values.all(), right.values.all(), left.values.all());
  left.leaves += right.leaves;
  spares_.push_back(std::move(right.values));
}

void gradient_tree::close_leaf(compute::ops& ops) {
  ensure(static_cast<bool>(open_), "a gradient leaf was closed that was never opened");
  nodes_.push_back({std::move(open_), 1});
  open_ = {};
  ++closed_;
  while (nodes_.size() >= 2 && nodes_[nodes_.size() - 2].leaves == nodes_.back().leaves) {
    add_top_two(ops);
  }
  if (closed_ == leaves_) {
    while (nodes_.size() >= 2) add_top_two(ops);
  }
}

compute::view gradient_tree::sum() {
  ensure(closed_ == leaves_ && nodes_.size() == 1,
         "a gradient sum was read before all leaves were in");
  return nodes_.front().values.all();
}

void gradient_tree::reset() {
  if (open_) spares_.push_back(std::move(open_));
  open_ = {};
  for (node& n : nodes_) spares_.push_back(std::move(n.values));
  nodes_.clear();
  closed_ = 0;
}

std::size_t gradient_tree::bytes() const {
  return (spares_.size() + nodes_.size() + (open_ ? 1 : 0)) * elements_ *
         compute::bytes_of(compute::dtype::float32);
}

}  // namespace troupe::model
