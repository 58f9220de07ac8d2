#include "actors/memory_check.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>

#include "actors/model_shape.hpp"
#include "actors/text.hpp"
#include "compute/dry_executor.hpp"
#include "config/base/tree.hpp"

namespace troupe::actors {

namespace {

// Of the blocks that the share holds.
std::uint64_t elements_of(const world_shape& shape, const std::vector<block_id>& blocks) {
  std::uint64_t elements = 0;
  for (const block_id& b : blocks) elements += shape.layers.at(b.layer).at(b.block).elements;
  return elements;
}

std::uint64_t tree_elements(const model::description& d, const model::model_layout& layout,
                            const member_share& share) {
  const std::uint64_t tied = d.tied ? d.vocabulary * d.width : 0;
  return (model::parameter_count(layout) + tied) *
         model::gradient_tree::buffers_needed({share.first_leaf, share.leaves},
                                              share.virtual_ranks);
}

// Slots and sums. Who computes all virtual ranks has its sums in the tree.
std::uint64_t sum_elements(const world_shape& shape, const member_share& share) {
  std::uint64_t elements = 2 * elements_of(shape, share.backup);
  if (share.leaves == share.virtual_ranks) return elements;
  const std::uint32_t n = share.virtual_ranks, behind = share.first_leaf + share.leaves;
  const std::size_t arriving =
      complete_nodes(0, share.first_leaf, n).size() + complete_nodes(behind, n - behind, n).size();
  for (const block_id& b : share.primary) {
    const block_shape& block = shape.layers.at(b.layer).at(b.block);
    elements += 2 * std::uint64_t{block.elements};
    for (const std::uint32_t source : block.sources) elements += arriving * source;
  }
  return elements;
}

// By making the pass on a device that has no memory.
std::uint64_t activations_of(const model::description& d, const model::model_layout& layout,
                             const trainer_settings& settings, const member_share& share) {
  if (share.leaves == 0) return 0;
  compute::dry_executor device;
  const model::network net(device, d, layout, settings.seq_len, settings.seed);
  return model::training_pass(net, settings.batch, {share.first_leaf, share.leaves})
      .activation_bytes();
}

}  // namespace

member_bytes bytes_of(const model::description& d, const trainer_settings& settings,
                      const member_share& share) {
  const model::model_layout layout = model::make_layout(d);
  const world_shape shape = shape_of(d, layout);
  const std::uint64_t held = elements_of(shape, share.primary) + elements_of(shape, share.backup);
  member_bytes bytes;
  bytes.parameters = sizeof(float) * (share.leaves > 0 ? model::parameter_count(layout) : held);
  bytes.optimizer = 2 * sizeof(float) * held;
  bytes.gradients = sizeof(float) * (tree_elements(d, layout, share) + sum_elements(shape, share));
  bytes.activations = activations_of(d, layout, settings, share);
  return bytes;
}

std::uint64_t memory_needed(const model::description& d, const trainer_settings& settings) {
  member_share all;
  all.virtual_ranks = all.leaves = static_cast<std::uint32_t>(settings.batch.virtual_ranks);
  const world_shape shape = shape_of(d, model::make_layout(d));
  for (std::uint32_t l = 0; l < shape.layers.size(); ++l) {
    for (std::uint32_t b = 0; b < shape.layers[l].size(); ++b) all.primary.push_back({l, b});
  }
  return bytes_of(d, settings, all).total();
}

std::uint64_t memory_available() {
  std::ifstream facts("/proc/meminfo");
  for (std::string name; facts >> name;) {
    std::uint64_t kib = 0;
    if (name == "MemAvailable:" && facts >> kib) return kib * 1024;
  }
  return 0;
}

status check_memory(const model::description& d, const trainer_settings& settings,
                    std::uint64_t available) {
  const std::uint64_t needed = memory_needed(d, settings);
  if (available == 0 || needed <= available) return done{};
  return error{
      exit_code::bad_config,
      fmt::format("this run needs at least {} of memory and {} are available; try a smaller "
                  "training.micro_batch_size, or a smaller model",
                  short_bytes(static_cast<double>(needed)),
                  short_bytes(static_cast<double>(available)))};
}

}  // namespace troupe::actors
