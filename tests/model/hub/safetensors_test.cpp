#include "model/hub/safetensors.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "config/base/memory_file.hpp"

namespace troupe::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string with_length(std::string_view header, std::string_view data = "") {
  const std::uint64_t length = header.size();
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  return text + std::string(header) + std::string(data);
}

// Reads the header of a file with this content: "" or why it is refused.
std::string refusal(const std::string& content) {
  memory_file_system memory;
  EXPECT_TRUE(replace(memory, "/w.safetensors", content));
  auto header = read_safetensors_header(**memory.open("/w.safetensors", open_mode::read));
  if (header) return "";
  EXPECT_EQ(header.failure().code, exit_code::bad_data);
  EXPECT_THAT(header.failure().message, HasSubstr("/w.safetensors: "));
  return header.failure().message;
}

const std::string golden_json =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"BF16","shape":[1,2],"data_offsets":[8,12]}})";
const std::string golden_data("\x00\x00\x80\x3f\x00\x00\x00\xc0\x80\x3f\x00\xc0", 12);

std::string golden() { return with_length(golden_json + "  ", golden_data); }

TEST(safetensors, writes_the_golden_header) {
  const std::vector<tensor_shape> tensors{{"a", tensor_type::f32, {2}},
                                          {"b", tensor_type::bf16, {1, 2}}};
  const std::string head = *make_safetensors_header(tensors, {{"format", "pt"}});
  EXPECT_EQ(golden_json.size(), 142u);
  EXPECT_EQ(head + golden_data, golden());
  EXPECT_EQ(golden().size(), 164u);
  EXPECT_EQ(golden().substr(0, 8), std::string("\x90\0\0\0\0\0\0\0", 8));
}

TEST(safetensors, reads_the_golden_file) {
  memory_file_system memory;
  ASSERT_TRUE(replace(memory, "/g", golden()));
  auto in = *memory.open("/g", open_mode::read);
  const auto header = *read_safetensors_header(*in);
  EXPECT_EQ(header.data_start, 152u);
  EXPECT_THAT(header.metadata,
              ElementsAre(std::pair<const std::string, std::string>("format", "pt")));
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0], (tensor_entry{"a", tensor_type::f32, {2}, 0, 8}));
  EXPECT_EQ(header.tensors[1], (tensor_entry{"b", tensor_type::bf16, {1, 2}, 8, 12}));
  for (const auto& t : header.tensors) {
    std::vector<float> values(t.elements());
    ASSERT_TRUE(read_as_float(*in, header, t, values));
    EXPECT_THAT(values, ElementsAre(1.f, -2.f)) << t.name;
  }
  EXPECT_EQ(header.find("c"), nullptr);
}

TEST(safetensors, pads_to_any_alignment) {
  const std::vector<tensor_shape> tensors{{"a", tensor_type::f32, {2}}};
  for (std::uint64_t alignment = 8; alignment <= 65536; alignment *= 2) {
    const std::string head = *make_safetensors_header(tensors, {{"format", "pt"}}, alignment);
    EXPECT_EQ(head.size() % alignment, 0u);
    EXPECT_EQ(refusal(head + std::string(8, '\0')), "");
  }
}

TEST(safetensors, accepts_empty_tensors_scalars_empty_metadata_and_no_tensor) {
  EXPECT_EQ(refusal(with_length("{}")), "");
  EXPECT_EQ(refusal(with_length("{}   ")), "");
  EXPECT_EQ(refusal(with_length(R"({"__metadata__":{}})")), "");
  EXPECT_EQ(
      refusal(with_length(R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", "1234")), "");
  EXPECT_EQ(refusal(with_length(R"({"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                R"("e":{"dtype":"F32","shape":[3,0],"data_offsets":[4,4]},)"
                                R"("a":{"dtype":"F4","shape":[2],"data_offsets":[4,5]}})",
                                "12345")),
            "");
}

std::string one(std::string_view type, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"w":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", type, shape,
                     offsets);
}

TEST(safetensors, refuses_files_that_are_cut_or_too_long) {
  const std::string file = golden();
  EXPECT_THAT(refusal(""), HasSubstr("has 0 bytes"));
  EXPECT_THAT(refusal(file.substr(0, 7)), HasSubstr("has 7 bytes"));
  EXPECT_THAT(refusal(file.substr(0, 100)), HasSubstr("the file ends after 92 of them"));
  EXPECT_THAT(refusal(file.substr(0, file.size() - 1)),
              HasSubstr(R"(tensor "b": ends at byte 12, but the file has only 11 bytes)"));
  EXPECT_THAT(refusal(file + "x"), HasSubstr("1 bytes follow after the last tensor"));
  std::string huge = file;
  huge[7] = '\x80';  // a length of 2^63 and some
  EXPECT_THAT(refusal(huge), HasSubstr("the header would have 9223372036854775952 bytes"));
}

TEST(safetensors, refuses_headers_that_are_not_strict_json) {
  EXPECT_THAT(refusal(with_length(" {}")), HasSubstr("does not start with '{'"));
  EXPECT_THAT(refusal(with_length("[]")), HasSubstr("does not start with '{'"));
  EXPECT_THAT(refusal(with_length("{")), HasSubstr("not valid JSON at its byte"));
  EXPECT_THAT(refusal(with_length("{} x")), HasSubstr("not valid JSON at its byte 4"));
  EXPECT_THAT(refusal(with_length("{\"\xff\":1}")), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(with_length(std::string(1000, '{'))), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(with_length("{\"a\":" + std::string(100000, '['))),
              HasSubstr("found an array"));
}

TEST(safetensors, refuses_strange_fields_and_names_the_tensor) {
  EXPECT_THAT(refusal(with_length(R"({"w":{"dtype":"F32","shape":[1]}})", "1234")),
              HasSubstr(R"(tensor "w": data_offsets is missing)"));
  EXPECT_THAT(refusal(with_length(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})",
                                  "1234")),
              HasSubstr(R"(tensor "w": unknown field "x")"));
  EXPECT_THAT(refusal(with_length(R"({"w":{"dtype":"F32","dtype":"F32"}})")),
              HasSubstr(R"(tensor "w": the field dtype appears twice)"));
  const std::string w = R"("w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_THAT(refusal(with_length("{" + w + "," + w + "}")),
              HasSubstr(R"(the name "w" appears twice)"));
  EXPECT_THAT(refusal(with_length(R"({"__metadata__":{"a":"1","a":"2"}})")),
              HasSubstr("appears twice"));
  EXPECT_THAT(refusal(with_length(R"({"__metadata__":{"step":1}})")),
              HasSubstr("a text as metadata"));
  EXPECT_THAT(refusal(with_length(R"({"w":null})")), HasSubstr("found null"));
  EXPECT_THAT(refusal(with_length(one("F32", "[1.0]", "[0,4]"), "1234")),
              HasSubstr("the number 1.0"));
  EXPECT_THAT(refusal(with_length(one("F32", "[-1]", "[0,4]"), "1234")), HasSubstr("negative"));
  EXPECT_THAT(refusal(with_length(one("F32", "[1]", "[0,4,8]"), "1234")), HasSubstr("exactly two"));
  EXPECT_THAT(refusal(with_length(one("F32", "[1]", "[4]"), "1234")), HasSubstr("exactly two"));
  EXPECT_THAT(refusal(with_length(one("F31", "[1]", "[0,4]"), "1234")),
              HasSubstr(R"(unknown dtype "F31")"));
}

TEST(safetensors, refuses_offsets_that_do_not_fit) {
  EXPECT_THAT(refusal(with_length(one("F32", "[1]", "[4,0]"), "1234")), HasSubstr("after its end"));
  EXPECT_THAT(refusal(with_length(one("F32", "[2]", "[0,4]"), "1234")), HasSubstr("needs 8 bytes"));
  EXPECT_THAT(refusal(with_length(one("F4", "[1]", "[0,0]"))), HasSubstr("whole number of bytes"));
  EXPECT_THAT(refusal(with_length(one("F32", "[4294967296,4294967296]", "[0,0]"))),
              HasSubstr("whole number of bytes"));
  EXPECT_THAT(refusal(with_length(one("F32", "[1]", "[4,8]"), "12345678")),
              HasSubstr("leaves a hole"));
  EXPECT_THAT(refusal(with_length(one("F32", "[18446744073709551616]", "[0,4]"), "1234")),
              HasSubstr("not a whole one below 2^64"));
  EXPECT_THAT(refusal(with_length(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                  R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                                  "123456")),
              HasSubstr(R"(tensor "b": begins at byte 2, inside of the tensor before it)"));
}

std::vector<float> read_one(std::string_view type, std::string_view data, std::size_t count,
                            std::string& why) {
  memory_file_system memory;
  EXPECT_TRUE(
      replace(memory, "/f",
              with_length(one(type, fmt::format("[{}]", count), fmt::format("[0,{}]", data.size())),
                          data)));
  auto in = *memory.open("/f", open_mode::read);
  const auto header = *read_safetensors_header(*in);
  std::vector<float> values(count);
  auto s = read_as_float(*in, header, header.tensors[0], values);
  why = s ? "" : s.failure().message;
  return values;
}

TEST(safetensors, widens_exactly_and_never_casts) {
  std::string why;
  // 1, -2, the smallest subnormal, the largest number, infinity, minus zero
  const std::uint16_t halves[] = {0x3C00, 0xC000, 0x0001, 0x7BFF, 0x7C00, 0x8000, 0x3555};
  const auto values = read_one("F16", {reinterpret_cast<const char*>(halves), 14}, 7, why);
  EXPECT_THAT(values, ElementsAre(1.f, -2.f, 0x1p-24f, 65504.f, INFINITY, -0.f, 0x1.554p-2f));
  EXPECT_TRUE(std::signbit(values[5]));
  const double exact[] = {0.5, -3};
  EXPECT_THAT(read_one("F64", {reinterpret_cast<const char*>(exact), 16}, 2, why),
              ElementsAre(0.5f, -3.f));
  EXPECT_EQ(why, "");
  for (const double inexact : {0.1, 1e300, 1e-60}) {
    (void)read_one("F64", {reinterpret_cast<const char*>(&inexact), 8}, 1, why);
    EXPECT_THAT(why, HasSubstr(R"(tensor "w": element 0 = )"));
  }
  (void)read_one("I64", std::string(8, '\0'), 1, why);
  EXPECT_THAT(why, HasSubstr("dtype I64"));
  // Longer than the piece that is converted at a time.
  std::vector<std::uint16_t> many(100'000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::uint16_t>(i % 30000);
  const auto wide =
      read_one("BF16", {reinterpret_cast<const char*>(many.data()), 200'000}, many.size(), why);
  for (std::size_t i = 0; i < many.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::uint32_t{many[i]} << 16);
  }
}

TEST(safetensors, exports_widest_types_first_then_by_name) {
  std::vector<tensor_shape> tensors{{"b", tensor_type::bf16, {1}},
                                    {"z", tensor_type::f32, {1}},
                                    {"a", tensor_type::bf16, {1}},
                                    {"y", tensor_type::i64, {1}}};
  sort_for_export(tensors);
  std::string order;
  for (const auto& t : tensors) order += t.name;
  EXPECT_EQ(order, "yzab");
}

// Whatever is changed in a good file, it is read or refused, and what is read fits into the file.
TEST(safetensors, survives_random_mutations) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const std::string pieces[] = {"{",
                                "}",
                                "[",
                                "]",
                                ",",
                                ":",
                                "\"",
                                "\\u0000",
                                "\\",
                                "-1",
                                "1e9",
                                "null",
                                "18446744073709551615",
                                "\"shape\"",
                                "\"a\"",
                                "\xf0\x9f",
                                "9999999"};
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string file = golden();
    for (std::uint64_t changes = 1 + random() % 3; changes > 0 && !file.empty(); --changes) {
      const std::size_t at = random() % file.size();
      switch (random() % 4) {
        case 0:
          file[at] = static_cast<char>(random());
          break;
        case 1:
          file.erase(at, 1 + random() % 4);
          break;
        case 2:
          file.insert(at, pieces[random() % std::size(pieces)]);
          break;
        default:
          file.resize(at + 1);
      }
    }
    memory_file_system memory;
    ASSERT_TRUE(replace(memory, "/f", file));
    auto in = *memory.open("/f", open_mode::read);
    auto header = read_safetensors_header(*in);
    if (!header) {
      EXPECT_FALSE(header.failure().message.empty());
      continue;
    }
    ++accepted;
    std::uint64_t total = 0;
    for (const auto& t : header->tensors) total += t.end - t.begin;
    ASSERT_EQ(header->data_start + total, file.size());
    for (const auto& t : header->tensors) {
      std::vector<float> values(t.elements());
      (void)read_as_float(*in, *header, t, values);
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace troupe::model
