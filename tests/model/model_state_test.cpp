#include "model/model_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/support/tiny_model.hpp"

namespace troupe::model {
namespace {

struct initialized {
  initialized(const description& d, std::uint64_t seed, int threads = 1)
      : device(compute::make_cpu_executor(threads)),
        layout(make_layout(d)),
        state(allocate_state(*device, layout, true)) {
    initialize(*device, d, layout, seed, state);
  }
  std::span<const float> values(std::size_t layer, const tensor_info& t) {
    return state.layers[layer].parameters.all().host<float>().subspan(t.offset, t.size);
  }
  // FNV-1a over the bits of all parameters.
  std::uint64_t hash() {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (layer_state& layer : state.layers) {
      for (const float value : layer.parameters.all().host<float>()) {
        hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3u;
      }
    }
    return hash;
  }

  std::unique_ptr<compute::executor> device;
  model_layout layout;
  model_state state;
};

// A change here changes the first weights of every run: it needs a new numerics version.
constexpr std::uint64_t golden_gpt2 = 0xd68955b7f76b7484u, golden_llama = 0x65d0da8d1f54c3d3u;

TEST(initialize, gives_the_same_bits_for_ever) {
  EXPECT_EQ(initialized(tests::tiny_gpt2(), 1234).hash(), golden_gpt2);
  EXPECT_EQ(initialized(tests::tiny_llama(), 1234).hash(), golden_llama);
  EXPECT_EQ(initialized(tests::tiny_llama(), 1234, 3).hash(), golden_llama);
  EXPECT_NE(initialized(tests::tiny_llama(), 1235).hash(), golden_llama);
}

TEST(initial_values, are_the_same_for_any_part_of_a_layer) {
  for (const description& d : {tests::tiny_gpt2(), tests::tiny_llama()}) {
    initialized model(d, 7);
    for (std::size_t l = 0; l < model.layout.size(); ++l) {
      const std::span<const float> whole = model.state.layers[l].parameters.all().host<float>();
      for (std::size_t first = 0, size = 1; first < whole.size(); first += size, size += 331) {
        std::vector<float> part(std::min(size, whole.size() - first));
        initial_values(d, model.layout, 7, l, first, part);
        ASSERT_TRUE(std::ranges::equal(part, whole.subspan(first, part.size()))) << first;
      }
    }
  }
}

TEST(initialize, draws_matrices_with_the_familys_spread) {
  for (description d : {tests::tiny_gpt2(), tests::tiny_llama()}) {
    d.width = 120;
    d.head_dim = 120 / d.heads;
    d.inner = 300;
    d.initializer_range = 0.03;
    initialized model(d, 7);
    for (std::size_t l = 0; l < model.layout.size(); ++l) {
      for (const tensor_info& t : model.layout[l].tensors) {
        if (!t.decays()) continue;
        double sum = 0, squares = 0;
        for (const float value : model.values(l, t)) {
          sum += value;
          squares += static_cast<double>(value) * value;
        }
        const double n = static_cast<double>(t.size);
        const bool ends_a_branch = t.name.find("c_proj") != std::string::npos;
        const double spread = ends_a_branch ? 0.03 / std::sqrt(2.0 * 2) : 0.03;
        // Five standard errors of the mean and of the standard deviation.
        EXPECT_NEAR(sum / n, 0, 5 * spread / std::sqrt(n)) << t.name;
        EXPECT_NEAR(std::sqrt(squares / n), spread, 5 * spread / std::sqrt(2 * n)) << t.name;
      }
    }
  }
}

TEST(initialize, sets_gains_to_one_and_biases_to_zero) {
  for (const description& d : {tests::tiny_gpt2(), tests::tiny_llama()}) {
    initialized model(d, 7);
    std::size_t vectors = 0;
    for (std::size_t l = 0; l < model.layout.size(); ++l) {
      for (const tensor_info& t : model.layout[l].tensors) {
        if (t.decays()) continue;
        ++vectors;
        const float expected = t.name.ends_with(".bias") ? 0.0f : 1.0f;
        for (const float value : model.values(l, t)) ASSERT_EQ(value, expected) << t.name;
      }
    }
    EXPECT_EQ(vectors, d.bias ? 2 * 8 + 2u : 2 * 2 + 1u);
  }
}

TEST(initialize, leaves_the_moments_at_zero) {
  initialized model(tests::tiny_gpt2(), 7);
  for (layer_state& layer : model.state.layers) {
    for (const compute::buffer* b : {&layer.first_moment, &layer.second_moment}) {
      for (const float value : b->all().host<float>()) ASSERT_EQ(value, 0.0f);
    }
  }
}

TEST(initialize, draws_no_two_matrices_alike) {
  initialized model(tests::tiny_llama(), 7);
  std::vector<float> firsts;
  for (std::size_t l = 0; l < model.layout.size(); ++l) {
    for (const tensor_info& t : model.layout[l].tensors) {
      if (t.decays()) firsts.push_back(model.values(l, t)[0]);
    }
  }
  std::ranges::sort(firsts);
  EXPECT_EQ(std::ranges::adjacent_find(firsts), firsts.end());
  EXPECT_EQ(firsts.size(), 1 + 2 * 7 + 1u);
}

// What a change of width or depth elsewhere must not disturb.
TEST(initialize, an_element_follows_from_its_own_place) {
  description deeper = tests::tiny_llama();
  deeper.layers = 3;
  initialized a(tests::tiny_llama(), 7), b(deeper, 7);
  for (std::size_t l : {0, 1, 2}) {
    const std::span<const float> x = a.state.layers[l].parameters.all().host<float>();
    const std::span<const float> y = b.state.layers[l].parameters.all().host<float>();
    EXPECT_TRUE(std::ranges::equal(x, y)) << l;
  }
}

}  // namespace
}  // namespace troupe::model
