#include "model/layout.hpp"

#include <gmock/gmock.h>

namespace troupe::model {
namespace {

using testing::ElementsAre;

using named_shape = std::pair<std::string, std::vector<std::size_t>>;

std::vector<named_shape> shapes_of(const layer_layout& layer) {
  std::vector<named_shape> shapes;
  for (const tensor_info& t : layer.tensors) shapes.emplace_back(t.name, t.shape);
  return shapes;
}

description gpt2_124m() {
  description d;
  d.family = family::gpt2;
  d.vocabulary = 50257;
  d.width = 768;
  d.inner = 3072;
  d.layers = 12;
  d.heads = d.kv_heads = 12;
  d.head_dim = 64;
  d.positions = 1024;
  d.tied = true;
  d.bias = true;
  return d;
}

description llama3_8b() {
  description d;
  d.vocabulary = 128256;
  d.width = 4096;
  d.inner = 14336;
  d.layers = 32;
  d.heads = 32;
  d.kv_heads = 8;
  d.head_dim = 128;
  d.positions = 8192;
  return d;
}

TEST(layout, gpt2_has_hugging_faces_names_in_model_order) {
  description d = gpt2_124m();
  d.layers = 2;
  const model_layout layout = make_layout(d);
  ASSERT_EQ(layout.size(), 4u);
  EXPECT_EQ(layout[0].name, "embedding");
  EXPECT_EQ(layout[0].kind, layer_kind::embedding);
  EXPECT_THAT(shapes_of(layout[0]),
              ElementsAre(named_shape{"transformer.wte.weight", {50257, 768}},
                          named_shape{"transformer.wpe.weight", {1024, 768}}));
  EXPECT_EQ(layout[2].name, "layer-0001");
  EXPECT_EQ(layout[2].kind, layer_kind::transformer);
  EXPECT_THAT(shapes_of(layout[2]),
              ElementsAre(named_shape{"transformer.h.1.ln_1.weight", {768}},
                          named_shape{"transformer.h.1.ln_1.bias", {768}},
                          named_shape{"transformer.h.1.attn.c_attn.weight", {2304, 768}},
                          named_shape{"transformer.h.1.attn.c_attn.bias", {2304}},
                          named_shape{"transformer.h.1.attn.c_proj.weight", {768, 768}},
                          named_shape{"transformer.h.1.attn.c_proj.bias", {768}},
                          named_shape{"transformer.h.1.ln_2.weight", {768}},
                          named_shape{"transformer.h.1.ln_2.bias", {768}},
                          named_shape{"transformer.h.1.mlp.c_fc.weight", {3072, 768}},
                          named_shape{"transformer.h.1.mlp.c_fc.bias", {3072}},
                          named_shape{"transformer.h.1.mlp.c_proj.weight", {768, 3072}},
                          named_shape{"transformer.h.1.mlp.c_proj.bias", {768}}));
  EXPECT_EQ(layout[3].name, "head");
  EXPECT_EQ(layout[3].kind, layer_kind::head);
  EXPECT_THAT(shapes_of(layout[3]), ElementsAre(named_shape{"transformer.ln_f.weight", {768}},
                                                named_shape{"transformer.ln_f.bias", {768}}));
}

TEST(layout, gpt2_without_biases_has_none_in_its_norms_either) {
  description d = gpt2_124m();
  d.bias = false;
  d.tied = false;
  for (const layer_layout& layer : make_layout(d)) {
    for (const tensor_info& t : layer.tensors) {
      EXPECT_FALSE(t.name.ends_with(".bias")) << t.name;
    }
  }
  EXPECT_THAT(shapes_of(make_layout(d).back()),
              ElementsAre(named_shape{"transformer.ln_f.weight", {768}},
                          named_shape{"lm_head.weight", {50257, 768}}));
}

TEST(layout, llama_has_hugging_faces_names_and_grouped_heads) {
  const model_layout layout = make_layout(llama3_8b());
  ASSERT_EQ(layout.size(), 34u);
  EXPECT_THAT(shapes_of(layout[0]),
              ElementsAre(named_shape{"model.embed_tokens.weight", {128256, 4096}}));
  EXPECT_EQ(layout[32].name, "layer-0031");
  EXPECT_THAT(shapes_of(layout[32]),
              testing::UnorderedElementsAre(
                  named_shape{"model.layers.31.self_attn.q_proj.weight", {4096, 4096}},
                  named_shape{"model.layers.31.self_attn.k_proj.weight", {1024, 4096}},
                  named_shape{"model.layers.31.self_attn.v_proj.weight", {1024, 4096}},
                  named_shape{"model.layers.31.self_attn.o_proj.weight", {4096, 4096}},
                  named_shape{"model.layers.31.mlp.gate_proj.weight", {14336, 4096}},
                  named_shape{"model.layers.31.mlp.up_proj.weight", {14336, 4096}},
                  named_shape{"model.layers.31.mlp.down_proj.weight", {4096, 14336}},
                  named_shape{"model.layers.31.input_layernorm.weight", {4096}},
                  named_shape{"model.layers.31.post_attention_layernorm.weight", {4096}}));
  EXPECT_THAT(shapes_of(layout[33]), ElementsAre(named_shape{"model.norm.weight", {4096}},
                                                 named_shape{"lm_head.weight", {128256, 4096}}));
}

TEST(layout, a_tied_head_holds_only_the_final_norm) {
  description d = llama3_8b();
  d.tied = true;
  EXPECT_THAT(shapes_of(make_layout(d).back()),
              ElementsAre(named_shape{"model.norm.weight", {4096}}));
  EXPECT_EQ(parameter_count(make_layout(llama3_8b())) - parameter_count(make_layout(d)),
            128256u * 4096u);
}

TEST(layout, tensors_stand_end_to_end_without_padding) {
  description odd = gpt2_124m();
  odd.width = 65;
  odd.heads = odd.kv_heads = 5;
  odd.head_dim = 13;
  odd.inner = 259;
  odd.vocabulary = 257;
  for (const description& d : {odd, gpt2_124m(), llama3_8b()}) {
    for (const layer_layout& layer : make_layout(d)) {
      std::size_t at = 0;
      for (const tensor_info& t : layer.tensors) {
        EXPECT_EQ(t.offset, at) << t.name;
        std::size_t size = 1;
        for (const std::size_t n : t.shape) size *= n;
        EXPECT_EQ(t.size, size) << t.name;
        at += size;
      }
      EXPECT_EQ(layer.elements, at) << layer.name;
    }
  }
}

TEST(layout, what_is_one_product_stands_together) {
  const model_layout layout = make_layout(llama3_8b());
  const layer_layout& layer = layout[1];
  const auto end = [&](tensor_role role) {
    return layer.find(role)->offset + layer.find(role)->size;
  };
  EXPECT_EQ(end(tensor_role::query), layer.find(tensor_role::key)->offset);
  EXPECT_EQ(end(tensor_role::key), layer.find(tensor_role::value)->offset);
  EXPECT_EQ(end(tensor_role::mlp_gate), layer.find(tensor_role::mlp_up)->offset);
  EXPECT_EQ(layer.find(tensor_role::qkv), nullptr);
}

TEST(layout, blocks_cover_a_layer_and_only_the_last_is_shorter) {
  for (const layer_layout& layer : make_layout(gpt2_124m())) {
    std::size_t covered = 0;
    for (std::size_t b = 0; b < layer.blocks(); ++b) {
      const bool last = b + 1 == layer.blocks();
      EXPECT_TRUE(last || layer.block_size(b) == 262144u) << layer.name;
      EXPECT_GT(layer.block_size(b), 0u);
      covered += layer.block_size(b);
    }
    EXPECT_EQ(covered, layer.elements) << layer.name;
  }
  layer_layout exact{layer_kind::head, "head", 2 * block_elements, {}};
  EXPECT_EQ(exact.blocks(), 2u);
  EXPECT_EQ(exact.block_size(1), block_elements);
  exact.elements += 1;
  EXPECT_EQ(exact.blocks(), 3u);
  EXPECT_EQ(exact.block_size(2), 1u);
}

TEST(layout, only_tensors_of_two_dimensions_decay) {
  for (const description& d : {gpt2_124m(), llama3_8b()}) {
    for (const layer_layout& layer : make_layout(d)) {
      for (const tensor_info& t : layer.tensors) {
        const bool vector = t.name.ends_with(".bias") || t.name.find("ln_") != std::string::npos ||
                            t.name.find("norm") != std::string::npos;
        EXPECT_EQ(t.decays(), !vector) << t.name;
      }
    }
  }
}

TEST(layout, known_models_have_their_known_number_of_parameters) {
  EXPECT_EQ(parameter_count(make_layout(gpt2_124m())), 124439808u);
  EXPECT_EQ(parameter_count(make_layout(llama3_8b())), 8030261248u);
}

TEST(layout, known_models_have_their_known_flops_a_token) {
  const description gpt2 = gpt2_124m(), llama = llama3_8b();
  // 6 (12 x 12 x 768^2 + 50257 x 768) + 12 x 12 x 768 x 1024; the blocks' matrices and the head.
  const double gpt2_flops = flops_per_token(gpt2, make_layout(gpt2), 1024);
  EXPECT_EQ(gpt2_flops, 6.0 * (84934656.0 + 38597376.0) + 113246208.0);
  EXPECT_NEAR(gpt2_flops, 855.2e6, 0.8e6);
  EXPECT_NEAR(flops_per_token(llama, make_layout(llama), 8192), 57.91e9, 0.01e9);
  description tied = llama;
  tied.tied = true;  // the head multiplies whoever stores it
  EXPECT_EQ(flops_per_token(tied, make_layout(tied), 8192),
            flops_per_token(llama, make_layout(llama), 8192));
}

}  // namespace
}  // namespace troupe::model
