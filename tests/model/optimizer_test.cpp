#include "model/optimizer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/support/tiny_model.hpp"

namespace troupe::model {
namespace {

constexpr adamw_settings settings{
    .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1};

// One layer whose tensors lie across block borders: a matrix that ends inside the second block, a
// vector that begins there, and a matrix over the last border.
layer_layout large_layer() {
  layer_layout layer{layer_kind::transformer, "layer-0000", 0, {}};
  const auto add = [&](tensor_role role, const char* name, std::vector<std::size_t> shape) {
    std::size_t size = 1;
    for (const std::size_t n : shape) size *= n;
    layer.tensors.push_back({role, name, std::move(shape), layer.elements, size});
    layer.elements += size;
  };
  add(tensor_role::qkv, "first", {block_elements / 64 + 3, 65});
  add(tensor_role::attention_norm, "second", {1027});
  add(tensor_role::mlp_up, "third", {301, block_elements / 256 - 7});
  add(tensor_role::mlp_norm, "fourth", {9});
  return layer;
}

std::vector<float> random_values(std::size_t size, std::uint64_t seed) {
  std::vector<float> values(size);
  compute::fill_normal({.seed = seed}, 0, values);
  return values;
}

struct fixture {
  fixture() : device(compute::make_cpu_executor(1)), layer(large_layer()) {
    state.parameters = device->allocate(layer.elements, compute::dtype::float32);
    state.first_moment = device->allocate(layer.elements, compute::dtype::float32);
    state.second_moment = device->allocate(layer.elements, compute::dtype::float32);
    std::ranges::copy(random_values(layer.elements, 1), parameters().begin());
    gradient = random_values(layer.elements, 2);
  }
  void update(compute::ops& ops, std::size_t block) {
    const std::size_t at = block * block_elements, size = layer.block_size(block);
    update_block(
        ops, layer, block, settings, scalars,
        {.gradient = compute::host_view(std::span<const float>(gradient).subspan(at, size)),
         .parameters = state.parameters.part(at, size),
         .first_moment = state.first_moment.part(at, size),
         .second_moment = state.second_moment.part(at, size)});
  }
  std::span<float> parameters() { return state.parameters.all().host<float>(); }

  std::unique_ptr<compute::executor> device;
  layer_layout layer;
  layer_state state;
  std::vector<float> gradient;
  update_scalars scalars{.scale = 0.25f, .lr = 0.01f, .correction1 = 0.1f, .correction2 = 0.05f};
};

TEST(optimizer, decays_matrices_only) {
  fixture f;
  std::ranges::fill(f.gradient, 0.0f);
  const std::vector<float> before(f.parameters().begin(), f.parameters().end());
  f.device->run([&](compute::ops& ops) {
    for (std::size_t b = 0; b < f.layer.blocks(); ++b) {
      f.update(ops, b);
    }
  });
  for (const tensor_info& t : f.layer.tensors) {
    for (std::size_t i = t.offset; i < t.offset + t.size; ++i) {
      const double expected =
          t.shape.size() >= 2 ? static_cast<double>(before[i]) * (1 - 0.01 * 0.1) : before[i];
      ASSERT_NEAR(f.parameters()[i], expected, 1e-6 * std::fabs(expected)) << t.name << " " << i;
      ASSERT_TRUE(t.shape.size() >= 2 || f.parameters()[i] == before[i]) << t.name << " " << i;
    }
  }
}

TEST(optimizer, block_borders_and_their_order_do_not_show) {
  fixture by_block, at_once;
  by_block.device->run([&](compute::ops& ops) {
    for (std::size_t b = by_block.layer.blocks(); b-- > 0;) {
      by_block.update(ops, b);
    }
  });
  at_once.device->run([&](compute::ops& ops) {
    for (const tensor_info& t : at_once.layer.tensors) {
      ops.adamw({.size = t.size,
                 .gradient = compute::host_view(
                     std::span<const float>(at_once.gradient).subspan(t.offset, t.size)),
                 .parameters = at_once.state.parameters.part(t.offset, t.size),
                 .first_moment = at_once.state.first_moment.part(t.offset, t.size),
                 .second_moment = at_once.state.second_moment.part(t.offset, t.size),
                 .scale = 0.25f,
                 .lr = 0.01f,
                 .beta1 = 0.9f,
                 .beta2 = 0.95f,
                 .epsilon = 1e-8f,
                 .weight_decay = t.shape.size() >= 2 ? 0.1f : 0.0f,
                 .correction1 = 0.1f,
                 .correction2 = 0.05f});
    }
  });
  const std::vector<float> start = random_values(by_block.layer.elements, 1);
  const auto same = [](compute::buffer& a, compute::buffer& b) {
    return std::ranges::equal(
        a.all().host<float>(), b.all().host<float>(), {},
        [](float x) { return std::bit_cast<std::uint32_t>(x); },
        [](float x) { return std::bit_cast<std::uint32_t>(x); });
  };
  EXPECT_TRUE(same(by_block.state.parameters, at_once.state.parameters));
  EXPECT_TRUE(same(by_block.state.first_moment, at_once.state.first_moment));
  EXPECT_TRUE(same(by_block.state.second_moment, at_once.state.second_moment));
  for (std::size_t i = 0; i < start.size(); ++i) ASSERT_NE(by_block.parameters()[i], start[i]) << i;
}

TEST(optimizer, updates_one_block_and_nothing_beside_it) {
  fixture f;
  const std::vector<float> before(f.parameters().begin(), f.parameters().end());
  f.device->run([&](compute::ops& ops) { f.update(ops, 1); });
  for (std::size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(f.parameters()[i] != before[i], i / block_elements == 1) << i;
  }
}

TEST(optimizer, sums_the_squares_of_each_block) {
  fixture f;
  std::vector<double> sums(f.layer.blocks());
  f.device->run([&](compute::ops& ops) {
    block_squares(ops, f.layer, compute::host_view(std::span<const float>(f.gradient)),
                  compute::host_view(std::span(sums)));
  });
  ASSERT_EQ(sums.size(), 3u);
  for (std::size_t b = 0; b < sums.size(); ++b) {
    double expected = 0;
    for (std::size_t i = 0; i < f.layer.block_size(b); ++i) {
      const double g = f.gradient[b * block_elements + i];
      expected += g * g;
    }
    EXPECT_NEAR(sums[b], expected, 1e-12 * expected) << b;
  }
}

TEST(optimizer, corrects_the_bias_of_the_moments) {
  EXPECT_FLOAT_EQ(bias_correction(0.9, 1), 0.1f);
  EXPECT_FLOAT_EQ(bias_correction(0.95, 2), 0.0975f);
  EXPECT_FLOAT_EQ(bias_correction(0.9, 10), 0.6513215599f);
  EXPECT_EQ(bias_correction(0.9, 1000000), 1.0f);
  EXPECT_EQ(bias_correction(0.0, 1), 1.0f);
}

}  // namespace
}  // namespace troupe::model
