// The toy arithmetic of the simulated world: what a gradient is, how it is added and applied. Small
// (blocks of 16 floats) and merciless: a gradient mixes the bits of all parameters that the forward
// pass met with step, virtual rank and layer, and its numbers span many powers of two, so that a
// wrong order of additions, a mixed version or a missed update changes bits at once and for ever.
//
// Pure functions; toy_computation runs them as jobs in virtual time, toy_reference straight down.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/computation.hpp"

namespace troupe::actors::sim {

inline constexpr std::size_t toy_elements = 16;
using toy_block = std::array<float, toy_elements>;

struct toy_shape {
  std::uint32_t layers = 4, blocks = 2;  // blocks of each layer
  std::uint32_t virtual_ranks = 8;
  bool tied = true;  // the last layer also uses block 0 of layer 0, which gets a second gradient
  std::uint64_t seed = 1;
};
// Elements of a tied block that the head uses, from its second element on.
inline constexpr std::uint32_t toy_tied_elements = 8, toy_tied_offset = 1;

world_shape shape_of(const toy_shape& toy);

struct toy_state {
  toy_block parameters{}, first_moments{}, second_moments{};
};
toy_state first_state(const toy_shape& toy, block_id block);

// What flows through the layers for one virtual rank.
using toy_activation = std::uint64_t;
toy_activation first_activation(std::uint64_t step, std::uint32_t leaf);
// `parameters`: of all blocks that the layer uses, in order.
toy_activation through_layer(toy_activation below, std::uint32_t layer,
                             std::span<const toy_block* const> parameters);

// The gradient of one source of one block, from the layer's own activation and the topmost one.
toy_block gradient_of(const node_key& leaf, toy_activation at_layer, toy_activation at_top);
protocol::leaf_loss loss_of(std::uint32_t leaf, toy_activation at_top);

toy_block add(const toy_block& left, const toy_block& right);
// Adds the second source, if there is one, where it belongs.
toy_block join(const toy_block& own, const toy_block* tied);
double squares_of(const toy_block& sum);
void apply(const protocol::decision_record& record, const toy_block& sum, toy_state& state);

hash128 hash_of(const toy_block& values);
block_hashes hashes_of(const toy_state& state);

}  // namespace troupe::actors::sim
