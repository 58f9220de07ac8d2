#include "model/checkpoint/manifest.hpp"

#include <gmock/gmock.h>

#include "tests/model/checkpoint/fixture.hpp"

namespace troupe::checkpoint {
namespace {

using testing::HasSubstr;

manifest example() {
  const run_state state(tiny_model(), 120);
  return make_manifest(facts_at(120), state.layout, state.views());
}

// The text after the body's hash was made right again, as an editor of manifests would have it.
std::string resealed(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto body = text.rfind(",\n  \"check\"");
  return text.substr(0, body) + ",\n  \"check\": \"" + hash_text(text.substr(0, body)).hex() +
         "\"\n}\n";
}

// Its hashes were checked once with another implementation of xxh3 (Python's xxhash).
TEST(manifest, is_written_as_it_always_was) {
  EXPECT_EQ(to_text(example()), R"json({
  "format": 1,
  "run_id": "run-1",
  "step": 120,
  "data_position": 960,
  "updates": 119,
  "tokens": 7680,
  "model": {
    "model_type": "gpt2",
    "vocab_size": 11,
    "hidden_size": 4,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 2,
    "max_position_embeddings": 6,
    "norm_eps": 1.0000000000000001e-05,
    "rope_theta": 10000,
    "rope_scaling": null,
    "tie_word_embeddings": true,
    "bias": true,
    "initializer_range": 0.02,
    "dropout": 0
  },
  "config": [
    {
      "key": "optimizer.lr",
      "value": "0.00029999999999999997"
    },
    {
      "key": "training.seed",
      "value": "1234"
    }
  ],
  "numerics_class": "cpu-chain",
  "numerics_version": 1,
  "data_digest": "00112233445566778899aabbccddeeff",
  "tokenizer": "byte",
  "record": {"loss_bits":4607182418800017408,"step":120},
  "history": [
    {
      "step": 5,
      "what": "resumed with training.steps = 60 instead of 10"
    }
  ],
  "files": [
    {
      "name": "embedding.parameters.safetensors",
      "size": 4368,
      "blocks": [
        "08b39900c5b997f884fe882be9bce45d"
      ]
    },
    {
      "name": "embedding.first_moments.safetensors",
      "size": 4368,
      "blocks": [
        "d62eae8fcb2d6f12cfcf823bd70779dd"
      ]
    },
    {
      "name": "embedding.second_moments.safetensors",
      "size": 4368,
      "blocks": [
        "65cad6567e2ba625c6ae78be3aff5ee4"
      ]
    },
    {
      "name": "layer-0000.parameters.safetensors",
      "size": 5072,
      "blocks": [
        "2211bffc1307832f8024020adde22e3c"
      ]
    },
    {
      "name": "layer-0000.first_moments.safetensors",
      "size": 5072,
      "blocks": [
        "d43753e94516eaf88114aab3340e694d"
      ]
    },
    {
      "name": "layer-0000.second_moments.safetensors",
      "size": 5072,
      "blocks": [
        "b3860958ec4353ae519e5cc98ed78883"
      ]
    },
    {
      "name": "head.parameters.safetensors",
      "size": 4128,
      "blocks": [
        "3d94de9f3f54bf7c1fcec64ae3b071f8"
      ]
    },
    {
      "name": "head.first_moments.safetensors",
      "size": 4128,
      "blocks": [
        "99d3eb27588893f05a99251f570be699"
      ]
    },
    {
      "name": "head.second_moments.safetensors",
      "size": 4128,
      "blocks": [
        "d460c38a2f28c5d019f56e6cbc9c602f"
      ]
    }
  ],
  "weights_hash": "e3cedcf05f26db1a6e6485b84bbb7c14",
  "state_hash": "628c938384231f90dfe043280019da9f",
  "check": "08d04b8cd8e50ea9fc620d17993ed3e8"
}
)json");
}

TEST(manifest, reads_back_what_was_written) {
  manifest m = example();
  EXPECT_EQ(*parse_manifest(to_text(m), "m"), m);
  m.about.model.family = model::family::llama;
  m.about.model.rope_scaling = {8, 1, 4, 8192};
  m.about.model.dropout = 0.1;
  m.about.run_id = "quote \" and \n newline";
  m.about.step = UINT64_MAX;
  m.about.history.clear();
  m.about.config.clear();
  EXPECT_EQ(*parse_manifest(to_text(m), "m"), m);
}

TEST(manifest, refuses_any_changed_or_missing_byte) {
  const std::string text = to_text(example());
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string bytes = text;
    bytes[at] ^= 1;
    ASSERT_FALSE(parse_manifest(bytes, "m")) << at;
    ASSERT_FALSE(parse_manifest(text.substr(0, at), "m")) << at;
  }
}

TEST(manifest, refuses_fields_that_it_does_not_know_or_misses) {
  const std::string text = to_text(example());
  const auto why = [&](std::string_view from, std::string_view to) {
    return reason(parse_manifest(resealed(text, from, to), "m"));
  };
  EXPECT_EQ(why("\"tokens\"", "\"tokens\""), "");
  EXPECT_EQ(why("\"tokens\"", "\"tokenz\""), "m: tokens: this field is missing");
  EXPECT_EQ(why("\"bias\": true", "\"bias\": true, \"x\": 1"), "m: model.x: unknown field");
  EXPECT_EQ(why("\"step\": 120", "\"step\": \"120\""),
            "m: step: expected a whole number from 0 to 2^64 - 1, found \"120\"");
  EXPECT_EQ(why("\"gpt2\"", "\"gpt3\""), "m: model.model_type: expected \"gpt2\" or \"llama\"");
  EXPECT_EQ(why("\"blocks\": [\n        \"", "\"blocks\": [\n        \"0"),
            "m: files[0].blocks: expected a hash of 32 hex digits");
  EXPECT_THAT(why("\"format\": 1", "\"format\": 2"), HasSubstr("has format 2, this program reads"));
  EXPECT_THAT(why("\"step\": 120", "\"step\": 120, \"step\": 120"), HasSubstr("appears twice"));
}

TEST(manifest, names_what_a_run_needs_to_go_on) {
  memory_file_system memory;
  ASSERT_TRUE(save_step(memory, 10));
  const auto m = read_manifest(memory, folder_of(10));
  ASSERT_TRUE(m) << reason(m);
  EXPECT_EQ(m->about, facts_at(10));
}

}  // namespace
}  // namespace troupe::checkpoint
