#include "actors/protocol/member_step.hpp"

#include <algorithm>
#include <string>

namespace troupe::actors::protocol {
namespace {

std::string name_of(block_id block) {
  return "block " + std::to_string(block.block) + " of layer " + std::to_string(block.layer);
}

error wrong(std::uint64_t step, const std::string& what) {
  return {exit_code::defect, "step " + std::to_string(step) + ": " + what};
}

}  // namespace

member_step::member_step(const std::vector<std::uint32_t>& blocks_of_layers,
                         std::size_t primary_blocks, std::uint32_t first_leaf, std::uint32_t leaves,
                         std::uint64_t version)
    : blocks_of_layers_(blocks_of_layers),
      primary_blocks_(primary_blocks),
      first_leaf_(first_leaf),
      leaves_(leaves),
      step_(version + 1),
      missing_(blocks_of_layers.size()) {}

void member_step::lacks(const std::vector<block_id>& blocks) {
  for (const block_id block : blocks) missing_.at(block.layer).insert(block.block);
}

std::vector<std::uint32_t> member_step::open_layers() const {
  std::vector<std::uint32_t> open;
  for (std::uint32_t layer = 0; layer < blocks_of_layers_.size(); ++layer) {
    if (missing_[layer].empty()) open.push_back(layer);
  }
  return open;
}

result<std::optional<std::uint32_t>> member_step::block_at(block_id block, std::uint64_t version) {
  if (version + 1 != step_) {
    return wrong(step_, "a block reached version " + std::to_string(version) +
                            ", which this step does not start from");
  }
  if (block.layer >= missing_.size() || missing_[block.layer].erase(block.block) == 0) {
    return wrong(step_, name_of(block) + " reached its version twice or is none of the model's");
  }
  if (!missing_[block.layer].empty()) return std::optional<std::uint32_t>();
  return std::optional(block.layer);
}

result<std::optional<vote>> member_step::block_ready(std::uint64_t step, const block_sum& sum) {
  if (step != step_ || voted_) return wrong(step, "a block was ready in a step that is voted");
  if (std::ranges::find(sums_, sum.block, &block_sum::block) != sums_.end()) {
    return wrong(step, name_of(sum.block) + " was ready twice");
  }
  sums_.push_back(sum);
  return vote_if_complete();
}

result<std::optional<vote>> member_step::computed(std::uint64_t step,
                                                  std::vector<leaf_loss> losses) {
  if (step != step_ || losses_) return wrong(step, "losses came for a step that has them");
  if (losses.size() != leaves_) return wrong(step, "losses do not cover the virtual ranks");
  std::ranges::sort(losses, {}, &leaf_loss::leaf);
  for (std::uint32_t i = 0; i < leaves_; ++i) {
    if (losses[i].leaf != first_leaf_ + i) {
      return wrong(step, "losses do not cover the virtual ranks");
    }
  }
  losses_ = std::move(losses);
  return vote_if_complete();
}

std::optional<vote> member_step::vote_if_complete() {
  if (sums_.size() < primary_blocks_ || (leaves_ > 0 && !losses_)) return std::nullopt;
  voted_ = true;
  std::ranges::sort(sums_, {}, &block_sum::block);
  vote complete;
  complete.step = step_;
  complete.sums = std::move(sums_);
  if (losses_) complete.losses = *losses_;
  return complete;
}

status member_step::decided(std::uint64_t step) {
  if (step != step_) {
    return wrong(step, "a decision came while step " + std::to_string(step_) + " is done");
  }
  if (votes() && !voted_) return wrong(step, "a decision came before this member's vote");
  ++step_;
  for (std::uint32_t layer = 0; layer < missing_.size(); ++layer) {
    for (std::uint32_t block = 0; block < blocks_of_layers_[layer]; ++block) {
      missing_[layer].insert(missing_[layer].end(), block);
    }
  }
  sums_.clear();
  losses_.reset();
  voted_ = false;
  return done{};
}

}  // namespace troupe::actors::protocol
