#include "model/description.hpp"

#include <gmock/gmock.h>

#include "tests/support/tiny_model.hpp"

namespace troupe::model {
namespace {

std::string refusal(const description& d) {
  const status s = check(d);
  if (s) return "";
  EXPECT_EQ(s.failure().code, exit_code::bad_config);
  return s.failure().message;
}

TEST(description, accepts_both_families) {
  EXPECT_EQ(refusal(tests::tiny_gpt2()), "");
  EXPECT_EQ(refusal(tests::tiny_llama()), "");
  description d = tests::tiny_llama();
  d.head_dim = 10;  // heads times head_dim need not be the width here
  d.kv_heads = 1;
  EXPECT_EQ(refusal(d), "");
}

TEST(description, refuses_what_cannot_be_computed) {
  using testing::HasSubstr;
  description d = tests::tiny_llama();
  d.kv_heads = 4;
  EXPECT_THAT(refusal(d), HasSubstr("num_key_value_heads = 4 does not divide"));
  d = tests::tiny_llama();
  d.head_dim = 7;
  EXPECT_THAT(refusal(d), HasSubstr("head_dim = 7 is odd"));
  d = tests::tiny_llama();
  d.bias = true;
  EXPECT_THAT(refusal(d), HasSubstr("model.bias"));
  d = tests::tiny_gpt2();
  d.head_dim = 9;
  EXPECT_THAT(refusal(d), HasSubstr("5 x 9 is not 40"));
  d = tests::tiny_gpt2();
  d.kv_heads = 1;
  EXPECT_THAT(refusal(d), HasSubstr("num_key_value_heads"));
  d = tests::tiny_gpt2();
  d.rope_scaling = rope_scaling{8, 1, 4, 64};
  EXPECT_THAT(refusal(d), HasSubstr("rope_scaling"));
  d = tests::tiny_gpt2();
  d.layers = 0;
  EXPECT_THAT(refusal(d), HasSubstr("at least 1"));
  d = tests::tiny_gpt2();
  d.vocabulary = std::size_t{1} << 31;
  EXPECT_THAT(refusal(d), HasSubstr("31 bits"));
}

TEST(description, knows_the_inner_width_of_each_family) {
  EXPECT_EQ(default_inner(family::gpt2, 768), 3072u);
  EXPECT_EQ(default_inner(family::llama, 4096), 11008u);  // Llama-1 7B
  EXPECT_EQ(default_inner(family::llama, 512), 1536u);
  EXPECT_EQ(default_inner(family::llama, 96), 256u);
}

}  // namespace
}  // namespace troupe::model
