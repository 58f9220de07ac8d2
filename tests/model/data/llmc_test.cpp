// G-17: width and range of token files.
#include "model/data/llmc.hpp"

#include <gtest/gtest.h>

#include "tests/model/data/data_files.hpp"

namespace troupe::model::data {
namespace {

std::string bytes_of(std::initializer_list<int> values) {
  std::string bytes;
  for (int v : values) bytes += static_cast<char>(v);
  return bytes;
}

std::vector<std::uint32_t> tokens_of(const std::string& path) {
  const auto shard = llmc_shard::open(path);
  EXPECT_TRUE(shard) << shard.failure().message;
  std::vector<std::uint32_t> tokens(shard->tokens());
  const auto read = shard->read(0, tokens);
  EXPECT_TRUE(read) << read.failure().message;
  return tokens;
}

// A four-token GPT-2 shard as llm.c writes it.
TEST(llmc_shard, reads_the_golden_bytes) {
  folder f;
  std::string file = bytes_of({0x88, 0xd8, 0x34, 0x01, 1, 0, 0, 0, 4, 0, 0, 0});
  file.resize(1024);
  file += bytes_of({0x50, 0xc4, 0x01, 0x00, 0x02, 0x00, 0x4f, 0xc4});
  EXPECT_EQ(tokens_of(f.write("a.bin", file)), (std::vector<std::uint32_t>{50256, 1, 2, 50255}));
}

TEST(llmc_shard, reads_32_bit_tokens) {
  folder f;
  std::string file = bytes_of({0xa1, 0xd9, 0x34, 0x01, 7, 0, 0, 0, 2, 0, 0, 0});
  file.resize(1024);
  file += bytes_of({0x00, 0xf4, 0x01, 0x00, 0x05, 0x00, 0x00, 0x00});
  EXPECT_EQ(tokens_of(f.write("a.bin", file)), (std::vector<std::uint32_t>{128000, 5}));
}

TEST(llmc_header, equals_the_golden_bytes) {
  const auto as_text = [](const auto& header) {
    return std::string(reinterpret_cast<const char*>(header.data()), header.size());
  };
  std::string narrow = bytes_of({0x88, 0xd8, 0x34, 0x01, 1, 0, 0, 0, 4, 0, 0, 0});
  narrow.resize(1024);
  EXPECT_EQ(as_text(llmc_header(llmc_16_bit, 4)), narrow);
  std::string wide = bytes_of({0xa1, 0xd9, 0x34, 0x01, 7, 0, 0, 0, 1, 2, 0, 0});
  wide.resize(1024);
  EXPECT_EQ(as_text(llmc_header(llmc_32_bit, 513)), wide);
}

TEST(llmc_kind, is_wide_as_soon_as_an_id_needs_it) {
  EXPECT_EQ(llmc_kind_for(257).token_bytes, 2u);
  EXPECT_EQ(llmc_kind_for(65536).token_bytes, 2u);
  EXPECT_EQ(llmc_kind_for(65537).token_bytes, 4u);
  EXPECT_EQ(llmc_kind_for(70000).magic, 20240801);
}

TEST(llmc_shard, reads_any_part_of_the_tokens) {
  folder f;
  std::vector<std::uint16_t> tokens;
  for (int i = 0; i < 1000; ++i) tokens.push_back(static_cast<std::uint16_t>(i * 6553));
  const auto shard = llmc_shard::open(f.write("a.bin", llmc16(tokens)));
  ASSERT_OK(shard);
  for (const std::size_t n : {1u, 2u, 7u, 64u, 333u})
    for (std::size_t first = 0; first + n <= tokens.size(); first += 111) {
      std::vector<std::uint32_t> part(n);
      ASSERT_OK(shard->read(first, part));
      EXPECT_EQ(part,
                std::vector<std::uint32_t>(tokens.begin() + first, tokens.begin() + first + n));
    }
}

// G-17 a: the magic declares one width, the tokens have the other.
TEST(llmc_shard, of_the_other_width_is_refused_with_sizes) {
  folder f;
  const auto wide_body = f.write("a.bin", llmc_file<std::uint32_t>(20240520, 1, {1, 2, 3}));
  expect_error(
      llmc_shard::open(wide_body), exit_code::bad_data,
      {wide_body, "1036 bytes", "3 tokens of 2 bytes", "1030 bytes", "fits 32-bit tokens"});
  const auto narrow_body = f.write("b.bin", llmc_file<std::uint16_t>(20240801, 7, {1, 2, 3}));
  expect_error(
      llmc_shard::open(narrow_body), exit_code::bad_data,
      {narrow_body, "1030 bytes", "3 tokens of 4 bytes", "1036 bytes", "fits 16-bit tokens"});
}

// G-17 e.
TEST(llmc_shard, with_an_odd_byte_or_a_wrong_count_is_refused) {
  folder f;
  const std::string good = llmc16({1, 2, 3});
  expect_error(llmc_shard::open(f.write("a.bin", good + "x")), exit_code::bad_data,
               {"1031 bytes", "7 bytes are not a whole number of 2-byte tokens"});
  expect_error(llmc_shard::open(f.write("a.bin", good.substr(0, good.size() - 2))),
               exit_code::bad_data, {"1028 bytes", "3 tokens", "2 tokens", "lost its end"});
  expect_error(llmc_shard::open(f.write("a.bin", good + "xxxx")), exit_code::bad_data,
               {"5 tokens", "goes on"});
}

TEST(llmc_shard, with_a_broken_header_is_refused_with_the_cause) {
  folder f;
  const auto with = [&](std::int32_t magic, std::int32_t version, std::int32_t count) {
    std::string file = little(magic) + little(version) + little(count);
    file.resize(1024);
    return llmc_shard::open(f.write("a.bin", file));
  };
  expect_error(with(20240520, 7, 0), exit_code::bad_data, {"version 7", "needs version 1"});
  expect_error(with(20240801, 1, 0), exit_code::bad_data, {"version 1", "needs version 7"});
  expect_error(with(20240520, 1, -1), exit_code::bad_data, {"-1 tokens"});
  expect_error(with(20240520, 1, 0), exit_code::bad_data, {"0 tokens"});
  expect_error(with(20240522, 1, 1), exit_code::bad_data, {"evaluation"});
  expect_error(with(20240326, 3, 1), exit_code::bad_data, {"model file"});
  expect_error(with(12345, 1, 1), exit_code::bad_data, {"magic 12345", "20240520"});
  expect_error(llmc_shard::open(f.write("a.bin", "abc")), exit_code::bad_data, {"3 bytes"});
  expect_error(llmc_shard::open(f.write("a.bin", llmc16({1}).substr(0, 700))), exit_code::bad_data,
               {"700 bytes", "1024"});
}

}  // namespace
}  // namespace troupe::model::data
