#include "config/value.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <random>

#include "config/options.hpp"

namespace troupe::config {
namespace {

using testing::HasSubstr;

result<value> fitted(const char* key, std::string_view text) {
  const option* o = find_option(key);
  ensure(o != nullptr, key);
  return fit(*o, read_text(*o, text));
}
std::string trouble(const char* key, std::string_view text) {
  const auto v = fitted(key, text);
  return v ? "accepted as " + print_value(*v) : v.failure().message;
}

TEST(value, a_whole_number_may_stand_where_a_float_belongs) {
  EXPECT_EQ(*fitted("training.max_norm", "1"), value(1.0));
  EXPECT_EQ(*fitted("training.max_norm", "+1e0"), value(1.0));
}

TEST(value, a_float_may_not_stand_where_a_whole_number_belongs) {
  EXPECT_THAT(trouble("training.steps", "1e3"), HasSubstr("1e3 is a float"));
  EXPECT_THAT(trouble("training.steps", "1e3"), HasSubstr("write 1000"));
  EXPECT_THAT(trouble("training.steps", "100.0"), HasSubstr("write 100"));
  EXPECT_THAT(trouble("training.steps", "0.5"), testing::Not(HasSubstr("write")));
}

TEST(value, a_number_in_quotes_is_text) {
  EXPECT_THAT(trouble("optimizer.lr", "\"1e-4\""), HasSubstr("\"1e-4\" is text in quotes"));
  EXPECT_THAT(trouble("training.steps", "'100'"), HasSubstr("'100' is text in quotes"));
}

TEST(value, only_the_bound_that_is_broken_is_named) {
  EXPECT_THAT(trouble("training.steps", "0"),
              HasSubstr("0 is out of bounds, it must be at least 1"));
  EXPECT_THAT(trouble("training.seq_len", "-5"), HasSubstr("-5 is out of bounds"));
  EXPECT_THAT(trouble("optimizer.lr", "0"), HasSubstr("it must be above 0"));
  EXPECT_THAT(trouble("optimizer.beta1", "1.0"), HasSubstr("it must be below 1"));
  EXPECT_THAT(trouble("model.num_hidden_layers", "70000"), HasSubstr("it must be at most 65535"));
}

TEST(value, numbers_that_are_none_are_refused) {
  for (const char* text : {"", "nan", "inf", "-inf", "1e999", "1,5", "0x10", "1_0", "ten", "1 2"}) {
    EXPECT_FALSE(fitted("optimizer.lr", text)) << text;
  }
  EXPECT_FALSE(fitted("training.steps", "99999999999999999999"));
}

TEST(value, truth_is_true_or_false) {
  EXPECT_EQ(*fitted("data.shuffle", "false"), value(false));
  for (const char* text : {"0", "1", "yes", "True", "\"true\"", ""}) {
    EXPECT_THAT(trouble("data.shuffle", text), HasSubstr("not true or false")) << text;
  }
}

TEST(value, a_choice_names_its_values_and_the_nearest) {
  EXPECT_THAT(
      trouble("lr_scheduler.decay_type", "cosin"),
      HasSubstr("\"cosin\" is none of its values, it takes \"linear\", \"cosine\", \"sqrt\" "
                "or \"constant\"; did you mean \"cosine\"?"));
  EXPECT_THAT(trouble("optimizer.name", "adamw"), HasSubstr("did you mean \"AdamW\"?"));
}

TEST(value, a_choice_of_a_later_version_says_so) {
  for (const auto& [key, text] : {std::pair{"compute.backend", "cuda"},
                                  {"tokenizer.type", "hf"},
                                  {"tokenizer.type", "tiktoken"},
                                  {"tokenizer.type", "sentencepiece"},
                                  {"data.sources[].format", "megatron"},
                                  {"data.sources[].format", "raw"},
                                  {"data.sources[].format", "npy"},
                                  {"training.dtype", "bfloat16"}}) {
    EXPECT_THAT(trouble(key, text), HasSubstr("is not in this version")) << key << " " << text;
  }
}

TEST(value, text_outside_a_file_needs_no_quotes) {
  EXPECT_EQ(*fitted("job.name", "12"), value("12"));
  EXPECT_EQ(*fitted("job.name", "\"a b\""), value("a b"));
}

TEST(value, printed_numbers_read_back_as_the_same_bits) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20000; ++i) {
    const auto number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    const std::string text = print_value(number);
    double back = 0;
    const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), back);
    ASSERT_EQ(trouble, std::errc()) << text;
    ASSERT_EQ(end, text.data() + text.size()) << text;
    ASSERT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(number)) << text;
  }
}

TEST(value, numbers_are_printed_as_people_write_them) {
  EXPECT_EQ(print_value(1e-8), "1e-8");
  EXPECT_EQ(print_value(1e22), "1e22");
  EXPECT_EQ(print_value(-1.5e-300), "-1.5e-300");
  EXPECT_EQ(print_value(10000.0), "10000.0");
  EXPECT_EQ(print_value(0.1), "0.1");
  EXPECT_EQ(print_value(std::int64_t{-1}), "-1");
  EXPECT_EQ(print_value(std::string("a\"b\\c\n\t\x01")), "\"a\\\"b\\\\c\\n\\t\\u0001\"");
}

}  // namespace
}  // namespace troupe::config
