#include "actors/sim/toy_reference.hpp"

#include "config/base/tree.hpp"

namespace troupe::actors::sim {

toy_reference::toy_reference(const toy_shape& toy, const reference_settings& settings,
                             std::uint64_t steps)
    : toy_(toy) {
  std::map<block_id, toy_state>& first = versions_.emplace_back();
  for (std::uint32_t layer = 0; layer < toy.layers; ++layer) {
    for (std::uint32_t block = 0; block < toy.blocks; ++block) {
      first[{layer, block}] = first_state(toy, {layer, block});
    }
  }
  while (records_.size() < steps) take_step(settings);
}

void toy_reference::take_step(const reference_settings& settings) {
  const std::uint64_t step = records_.size() + 1;
  std::map<block_id, toy_state> states = versions_.back();
  // Forward: each leaf's activations, layer by layer.
  std::vector<std::vector<toy_activation>> at(toy_.virtual_ranks);
  std::vector<double> losses, tokens;
  for (std::uint32_t leaf = 0; leaf < toy_.virtual_ranks; ++leaf) {
    at[leaf].push_back(first_activation(step, leaf));
    for (std::uint32_t layer = 0; layer < toy_.layers; ++layer) {
      std::vector<const toy_block*> used;
      for (std::uint32_t b = 0; b < toy_.blocks; ++b)
        used.push_back(&states[{layer, b}].parameters);
      if (toy_.tied && layer + 1 == toy_.layers) used.push_back(&states[{0, 0}].parameters);
      at[leaf].push_back(through_layer(at[leaf].back(), layer, used));
    }
    const protocol::leaf_loss loss = loss_of(leaf, at[leaf].back());
    losses.push_back(loss.loss_sum);
    tokens.push_back(loss.tokens);
  }
  // Gradients: every source in the fixed tree over all leaves.
  const auto tree = [&](auto& self, block_id block, std::uint8_t source,
                        tree_node node) -> toy_block {
    if (node.leaves == 1) {
      return gradient_of({block, source, node}, at[node.first][block.layer + 1],
                         at[node.first].back());
    }
    const auto [left, right] = halves(node);
    return add(self(self, block, source, left), self(self, block, source, right));
  };
  std::map<block_id, toy_block> sums;
  std::vector<double> squares;
  for (const auto& [id, state] : states) {
    const tree_node root{0, toy_.virtual_ranks};
    const toy_block own = tree(tree, id, 0, root);
    const bool tied = toy_.tied && id == block_id{0, 0};
    const toy_block second = tied ? tree(tree, id, 1, root) : toy_block{};
    sums[id] = join(own, tied ? &second : nullptr);
    squares.push_back(squares_of(sums[id]));
  }
  const std::uint64_t updates = records_.empty() ? 0 : records_.back().updates;
  const protocol::decision_record record = protocol::decide(
      step, updates,
      {.loss_sum = tree_sum(losses), .tokens = tree_sum(tokens), .squares = tree_sum(squares)},
      {.max_norm = settings.max_norm,
       .skip_nonfinite = settings.skip_nonfinite,
       .lr = settings.rate(step)});
  std::map<block_id, hash128>& hashes = sums_.emplace_back();
  for (auto& [id, state] : states) {
    apply(record, sums[id], state);
    hashes[id] = hash_of(sums[id]);
  }
  records_.push_back(record);
  versions_.push_back(std::move(states));
}

}  // namespace troupe::actors::sim
