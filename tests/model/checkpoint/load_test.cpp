#include "model/checkpoint/load.hpp"

#include "model/hub/safetensors.hpp"
#include "tests/model/checkpoint/fixture.hpp"

namespace troupe::checkpoint {
namespace {

using testing::HasSubstr;

class load_of_a_damaged_checkpoint : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(save_step(memory, 10)); }

  std::string path(std::string_view name) { return join_path(folder_of(10), name); }
  std::string refusal() {
    const auto loaded = load(memory, folder_of(10), state.layout, state.memory());
    if (!loaded) {
      EXPECT_EQ(loaded.failure().code, exit_code::io);
    }
    const auto verified = verify(memory, folder_of(10));
    EXPECT_EQ(bool(loaded), bool(verified)) << reason(loaded) << "\n" << reason(verified);
    return reason(loaded);
  }
  // Rewrites one header; the manifest and all sizes stay right.
  std::string refusal_with_header(std::vector<model::tensor_shape> tensors) {
    const std::string name = path("head.parameters.safetensors"), before = content(memory, name);
    std::string head = *model::make_safetensors_header(tensors, {{"format", "pt"}}, 4096);
    put(memory, name, head + before.substr(head.size()));
    const std::string why = refusal();
    put(memory, name, before);
    return why;
  }

  memory_file_system memory;
  run_state state{tiny_model()};
};

TEST_F(load_of_a_damaged_checkpoint, notices_a_flipped_bit_anywhere_in_every_file) {
  std::size_t flips = 0;
  for (const auto& name : names_in(memory, folder_of(10))) {
    const std::string before = content(memory, path(name));
    // The manifest's own test flips each of its bytes. Here every 7th of manifest, header and data
    // (4096 is no multiple of 7, so each place in a float is hit), and every 61st of the padding.
    for (std::size_t at = 0; at < before.size(); ++at) {
      const bool is_padding = name != manifest_name && at > 600 && at + 1 < 4096;
      if (at % (is_padding ? 61 : 7) != 0 && at + 1 != before.size()) continue;
      std::string bytes = before;
      bytes[at] ^= static_cast<char>(1 << at % 8);
      put(memory, path(name), bytes);
      const auto loaded = load(memory, folder_of(10), state.layout, state.memory());
      ASSERT_FALSE(loaded) << name << " byte " << at;
      ASSERT_THAT(reason(loaded), HasSubstr(folder_of(10)));
      ++flips;
    }
    put(memory, path(name), before);
  }
  EXPECT_GT(flips, 1500u);
  EXPECT_EQ(refusal(), "");
}

TEST_F(load_of_a_damaged_checkpoint, names_file_block_and_tensors) {
  std::string bytes = content(memory, path("layer-0000.first_moments.safetensors"));
  bytes[4096] ^= 1;
  put(memory, path("layer-0000.first_moments.safetensors"), bytes);
  EXPECT_EQ(refusal(), path("layer-0000.first_moments.safetensors") +
                           ": block 0 (tensors transformer.h.0.ln_1.weight to "
                           "transformer.h.0.mlp.c_proj.bias) does not match its hash");
}

TEST_F(load_of_a_damaged_checkpoint, notices_missing_short_long_and_swapped_files) {
  for (const auto& name : names_in(memory, folder_of(10))) {
    const std::string before = content(memory, path(name));
    ASSERT_TRUE(memory.remove(path(name)));
    EXPECT_THAT(refusal(), HasSubstr(path(name))) << "missing";
    put(memory, path(name), "");
    EXPECT_THAT(refusal(), HasSubstr(path(name))) << "empty";
    put(memory, path(name), before.substr(0, before.size() - 1));
    EXPECT_THAT(refusal(), HasSubstr(path(name))) << "short";
    put(memory, path(name), before + "x");
    EXPECT_THAT(refusal(), HasSubstr(path(name))) << "long";
    put(memory, path(name), before);
  }
  const std::string a = path("head.first_moments.safetensors"),
                    b = path("head.second_moments.safetensors");
  const std::string first = content(memory, a), second = content(memory, b);
  put(memory, a, second);
  put(memory, b, first);
  EXPECT_THAT(refusal(), HasSubstr("does not match its hash"));
}

TEST_F(load_of_a_damaged_checkpoint, names_tensors_that_are_not_the_models) {
  using enum model::tensor_type;
  const std::string weight = "transformer.ln_f.weight", bias = "transformer.ln_f.bias";
  EXPECT_EQ(refusal_with_header({{weight, f32, {4}}, {bias, f32, {4}}}), "");
  EXPECT_THAT(refusal_with_header({{weight, i32, {4}}, {bias, f32, {4}}}),
              HasSubstr("tensor \"transformer.ln_f.weight\": has dtype I32, expected F32"));
  EXPECT_THAT(refusal_with_header({{weight, f32, {2, 2}}, {bias, f32, {4}}}),
              HasSubstr("tensor \"transformer.ln_f.weight\": has shape [2, 2], the model has [4]"));
  EXPECT_THAT(refusal_with_header({{weight, f32, {8}}}), HasSubstr("has shape [8]"));
  EXPECT_THAT(refusal_with_header({{weight, f32, {4}}, {"other", f32, {4}}}),
              HasSubstr("tensor \"transformer.ln_f.bias\": is missing"));
  EXPECT_THAT(refusal_with_header({{weight, f32, {4}}, {bias, f32, {4}}, {"extra", f32, {0}}}),
              HasSubstr("tensor \"extra\": belongs to no part of this layer"));
  EXPECT_THAT(refusal_with_header({{bias, f32, {4}}, {weight, f32, {4}}}),
              HasSubstr("stands in another place"));
}

TEST_F(load_of_a_damaged_checkpoint, refuses_another_step_under_the_name) {
  ASSERT_TRUE(save_step(memory, 20));
  ASSERT_TRUE(remove_all(memory, folder_of(10)));
  ASSERT_TRUE(memory.rename(folder_of(20), folder_of(10)));
  EXPECT_THAT(refusal(), HasSubstr("the folder's name and its manifest (step 20) differ"));
}

TEST(load, refuses_the_checkpoint_of_another_model) {
  memory_file_system memory;
  ASSERT_TRUE(save_step(memory, 10));
  model::description wider = tiny_model();
  wider.inner = 20;
  run_state state(wider);
  EXPECT_THAT(
      reason(load(memory, folder_of(10), state.layout, state.memory())),
      HasSubstr("tensor \"transformer.h.0.mlp.c_fc.weight\": has shape [16, 4], the model has "
                "[20, 4]"));
  model::description deeper = tiny_model();
  deeper.layers = 2;
  run_state deep(deeper);
  EXPECT_THAT(reason(load(memory, folder_of(10), deep.layout, deep.memory())),
              HasSubstr("does not name layer-0001.parameters.safetensors"));
}

TEST(load, reports_a_read_error_with_its_path) {
  memory_file_system memory;
  ASSERT_TRUE(save_step(memory, 10));
  faulty_file_system twin(memory);
  twin.inject({file_operation::read, "*head.parameters*", 3});
  run_state state(tiny_model());
  EXPECT_THAT(reason(load(twin, folder_of(10), state.layout, state.memory())),
              HasSubstr("cannot read /run/checkpoints/step-00000010/head.parameters.safetensors: "
                        "Input/output error"));
}

// As a member of a world reads: parameters of the whole model, moments of what it holds.
class load_of_some_blocks : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(save_step(memory, 10, two_block_model())); }
  // Everything of the second block of the embedding; else the parameters.
  state_memory place(std::size_t layer, std::size_t block) {
    const state_memory all = state.memory()(layer, block);
    if (layer == 0 && block == 1) return all;
    return {all.parameters, {}, {}};
  }

  memory_file_system memory;
  run_state state{two_block_model()}, saved_state{two_block_model(), 10};
};

TEST_F(load_of_some_blocks, reads_what_has_a_place_and_nothing_else) {
  faulty_file_system twin(memory);
  const auto loaded = load(twin, folder_of(10), state.layout,
                           [this](std::size_t l, std::size_t b) { return place(l, b); });
  ASSERT_TRUE(loaded) << reason(loaded);
  for (std::size_t l = 0; l < state.layout.size(); ++l) {
    for (std::size_t b = 0; b < state.layout[l].blocks(); ++b) {
      const state_memory found = state.memory()(l, b), expected = saved_state.memory()(l, b);
      const auto same = [](std::span<float> x, std::span<float> y) {
        return std::memcmp(x.data(), y.data(), x.size_bytes()) == 0;
      };
      const bool held = l == 0 && b == 1;
      EXPECT_TRUE(same(found.parameters, expected.parameters)) << l << " " << b;
      EXPECT_EQ(same(found.first_moments, expected.first_moments), held) << l << " " << b;
      EXPECT_EQ(same(found.second_moments, expected.second_moments), held) << l << " " << b;
    }
  }
  for (const std::string& operation : twin.operations()) {
    EXPECT_THAT(operation, testing::Not(testing::ContainsRegex("read .*head.*moments")));
  }
}

TEST_F(load_of_some_blocks, notices_damage_in_what_it_reads) {
  const auto damage = [&](const std::string& name, std::size_t at) {
    const std::string path = join_path(folder_of(10), name), before = content(memory, path);
    std::string bytes = before;
    bytes[at] ^= 1;
    put(memory, path, bytes);
    const bool loads = bool(load(memory, folder_of(10), state.layout,
                                 [this](std::size_t l, std::size_t b) { return place(l, b); }));
    EXPECT_FALSE(verify(memory, folder_of(10)));
    put(memory, path, before);
    return loads;
  };
  EXPECT_FALSE(damage("head.parameters.safetensors", 4096));
  EXPECT_FALSE(damage("embedding.second_moments.safetensors", 4096 + (1 << 20)));
  EXPECT_TRUE(damage("embedding.second_moments.safetensors", 4096));  // not its block
  EXPECT_TRUE(damage("head.first_moments.safetensors", 4096));
}

}  // namespace
}  // namespace troupe::checkpoint
