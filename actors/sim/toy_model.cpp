#include "actors/sim/toy_model.hpp"

#include <bit>
#include <cmath>

namespace troupe::actors::sim {
namespace {

// One round of a mixing function with full avalanche (a multiply-xorshift pair): cheap, and every
// input bit reaches every output bit.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2));
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ULL;
  x = (x ^ (x >> 29)) * 0xca5a826395121157ULL;
  return x ^ (x >> 32);
}

// A number whose size spans thirty powers of two, so that sums round.
float number_from(std::uint64_t bits) {
  const int exponent = static_cast<int>(bits % 30) - 20;
  const auto mantissa = static_cast<float>((bits >> 8) & 0xffffff) / 16777216.0f;
  const float size = std::ldexp(0.5f + mantissa, exponent);
  return (bits >> 63) != 0 ? -size : size;
}

}  // namespace

world_shape shape_of(const toy_shape& toy) {
  world_shape shape;
  for (std::uint32_t layer = 0; layer < toy.layers; ++layer) {
    shape.layers.emplace_back(toy.blocks, block_shape{toy_elements, {toy_elements}, 0});
  }
  if (toy.tied) {
    shape.layers.front().front() = {
        toy_elements, {toy_elements, toy_tied_elements}, toy_tied_offset};
  }
  return shape;
}

toy_state first_state(const toy_shape& toy, block_id block) {
  toy_state state;
  for (std::size_t i = 0; i < toy_elements; ++i) {
    state.parameters[i] =
        number_from(mix(mix(mix(toy.seed, block.layer), block.block + 1000), i + 1));
  }
  return state;
}

toy_activation first_activation(std::uint64_t step, std::uint32_t leaf) {
  return mix(mix(0x7100, step), leaf);
}

toy_activation through_layer(toy_activation below, std::uint32_t layer,
                             std::span<const toy_block* const> parameters) {
  toy_activation out = mix(below, layer + 1);
  for (const toy_block* block : parameters) {
    for (const float p : *block) out = mix(out, std::bit_cast<std::uint32_t>(p));
  }
  return out;
}

toy_block gradient_of(const node_key& leaf, toy_activation at_layer, toy_activation at_top) {
  toy_block gradient{};
  const std::uint64_t key =
      mix(mix(at_layer, at_top), mix(leaf.block.block + 10, leaf.source + 1u));
  const std::size_t elements = leaf.source == 0 ? toy_elements : toy_tied_elements;
  for (std::size_t i = 0; i < elements; ++i) gradient[i] = number_from(mix(key, i));
  return gradient;
}

protocol::leaf_loss loss_of(std::uint32_t leaf, toy_activation at_top) {
  return {leaf, 1.0 + std::abs(static_cast<double>(number_from(at_top))),
          1.0 + static_cast<double>(at_top % 7)};
}

toy_block add(const toy_block& left, const toy_block& right) {
  toy_block sum;
  for (std::size_t i = 0; i < toy_elements; ++i) sum[i] = left[i] + right[i];
  return sum;
}

toy_block join(const toy_block& own, const toy_block* tied) {
  toy_block sum = own;
  if (tied == nullptr) return sum;
  for (std::size_t i = 0; i < toy_tied_elements; ++i) sum[toy_tied_offset + i] += (*tied)[i];
  return sum;
}

double squares_of(const toy_block& sum) {
  double squares = 0;
  for (const float g : sum) squares += static_cast<double>(g) * static_cast<double>(g);
  return squares;
}

void apply(const protocol::decision_record& record, const toy_block& sum, toy_state& state) {
  if (record.skip) return;
  for (std::size_t i = 0; i < toy_elements; ++i) {
    const float g = sum[i] * record.scale;
    float& m = state.first_moments[i];
    float& v = state.second_moments[i];
    m = 0.9f * m + 0.1f * g;
    v = 0.95f * v + 0.05f * g * g;
    state.parameters[i] -= record.lr * m / (std::sqrt(v) + 1e-3f);
  }
}

hash128 hash_of(const toy_block& values) { return hash_bytes(std::as_bytes(std::span(values))); }

block_hashes hashes_of(const toy_state& state) {
  hasher all;
  all.add(std::as_bytes(std::span(state.parameters)));
  all.add(std::as_bytes(std::span(state.first_moments)));
  all.add(std::as_bytes(std::span(state.second_moments)));
  return {hash_of(state.parameters), all.finish()};
}

}  // namespace troupe::actors::sim
