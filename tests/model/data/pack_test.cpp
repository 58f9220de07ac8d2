#include "model/data/pack.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "config/base/faulty_file.hpp"
#include "config/base/memory_file.hpp"
#include "model/data/inspect.hpp"
#include "model/data/side_file.hpp"
#include "tests/model/data/data_files.hpp"

namespace troupe::model::data {
namespace {

pack_options packing(const std::string& in, const std::string& out) {
  pack_options options;
  options.sources = {{in, data_format::automatic, "text"}};
  options.out = out;
  return options;
}

std::vector<std::string> names_in(const folder& f) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(f / "."))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(pack, writes_the_golden_bytes_of_a_token_file) {
  folder f;
  const auto report =
      pack(packing(f.write("a.txt", "a\xC3\xA9"), f / "out.bin"), real_file_system());
  ASSERT_OK(report);
  std::string expected = {char(0x88), char(0xd8), 0x34, 0x01, 1, 0, 0, 0, 4, 0, 0, 0};
  expected.resize(1024);
  expected += std::string({'a', 0, char(0xC3), 0, char(0xA9), 0, 0, 1});
  EXPECT_EQ(read_all(f / "out.bin"), expected);
  EXPECT_EQ(names_in(f), (std::vector<std::string>{"a.txt", "out.bin", "out.json"}));
}

TEST(pack, describes_the_tokens_in_a_side_file) {
  folder f;
  const auto in = f.write("a.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"\"}\n");
  const auto report = pack(packing(in, f / "out.bin"), real_file_system());
  ASSERT_OK(report);
  const auto side = parse_side_file(read_all(f / "out.json"), "out.json");
  ASSERT_OK(side);
  const std::vector<std::uint32_t> tokens = {'a', 'b', 256, 256};
  const std::string hash = hash_bytes(std::as_bytes(std::span(tokens))).hex();
  EXPECT_EQ(*side, (side_file{"byte", 257, 256, 2, 4, hash, {{"out.bin", 4, hash}}}));
}

TEST(pack, without_end_of_text_needs_no_257th_entry) {
  folder f;
  auto options = packing(f.write("a.txt", "abc"), f / "out.bin");
  options.add_eos = false;
  ASSERT_OK(pack(options, real_file_system()));
  const auto side = parse_side_file(read_all(f / "out.json"), "out.json");
  EXPECT_EQ(side->vocabulary_size, 256u);
  EXPECT_EQ(side->eod_token, std::nullopt);
  EXPECT_EQ(side->tokens, 3u);
}

TEST(pack, cuts_shards_and_numbers_them) {
  folder f;
  auto options = packing(f.write("a.txt", "abcdefg"), f / "out.bin");
  options.shard_tokens = 3;
  const auto report = pack(options, real_file_system());
  ASSERT_OK(report);
  EXPECT_EQ(names_in(f), (std::vector<std::string>{"a.txt", "out.json", "out_000000.bin",
                                                   "out_000001.bin", "out_000002.bin"}));
  EXPECT_EQ(read_all(f / "out_000000.bin"), llmc16({'a', 'b', 'c'}));
  EXPECT_EQ(read_all(f / "out_000001.bin"), llmc16({'d', 'e', 'f'}));
  EXPECT_EQ(read_all(f / "out_000002.bin"), llmc16({'g', 256}));
}

TEST(pack, that_fills_its_shards_exactly_writes_no_empty_one) {
  folder f;
  auto options = packing(f.write("a.txt", "abcde"), f / "out.bin");
  options.shard_tokens = 6;
  ASSERT_OK(pack(options, real_file_system()));
  EXPECT_EQ(read_all(f / "out.bin"), llmc16({'a', 'b', 'c', 'd', 'e', 256}));
}

TEST(pack, touches_existing_files_only_when_told_and_then_leaves_no_old_shard) {
  folder f;
  auto options = packing(f.write("a.txt", "abcdefg"), f / "out.bin");
  options.shard_tokens = 3;
  ASSERT_OK(pack(options, real_file_system()));
  options.shard_tokens = 100;
  expect_error(pack(options, real_file_system()), exit_code::cannot_use,
               {"there already", "--force"});
  EXPECT_EQ(read_all(f / "out_000002.bin"), llmc16({'g', 256}));
  f.write("out_000000x.bin", "of somebody else");
  options.replace_existing = true;
  ASSERT_OK(pack(options, real_file_system()));
  EXPECT_EQ(names_in(f),
            (std::vector<std::string>{"a.txt", "out.bin", "out.json", "out_000000x.bin"}));
}

TEST(pack, leaves_nothing_behind_after_bad_data) {
  folder f;
  f.write("a.txt", std::string(3 << 20, 'x'));
  f.write("b.txt", "bad \xE9 byte");
  auto options = packing(f / "*.txt", f / "out.bin");
  options.shard_tokens = 1 << 20;
  expect_error(pack(options, real_file_system()), exit_code::bad_data, {f / "b.txt", "byte 4:"});
  EXPECT_EQ(names_in(f), (std::vector<std::string>{"a.txt", "b.txt"}));
}

TEST(pack, of_nothing_or_of_token_files_is_an_error) {
  folder f;
  auto options = packing(f.write("a.jsonl", "{\"text\": \"\"}\n"), f / "out.bin");
  options.add_eos = false;
  expect_error(pack(options, real_file_system()), exit_code::bad_data, {"nothing to pack"});
  options.sources[0].path = f.write("b.bin", llmc16({1, 2}));
  expect_error(pack(options, real_file_system()), exit_code::bad_data,
               {"b.bin", "token file already"});
}

// Whatever operation fails, no token file has its name and no temporary file stays.
TEST(pack, leaves_no_half_file_when_any_write_fails) {
  folder f;
  const auto in = f.write("a.txt", std::string(3000, 'x'));
  int failures = 0;
  for (std::size_t at = 1; at < 100; ++at) {
    SCOPED_TRACE(testing::Message() << "write " << at << " fails");
    memory_file_system below;
    faulty_file_system files(below);
    files.inject({.operation = file_operation::write, .at = at, .error_number = ENOSPC});
    auto options = packing(in, "/out.bin");
    options.shard_tokens = 1000;
    const auto report = pack(options, files);
    if (report) break;
    ++failures;
    EXPECT_EQ(report.failure().code, exit_code::io) << report.failure().message;
    const bool tokens_failed = report.failure().message.find("out.json") == std::string::npos;
    const auto left = below.list("/");
    ASSERT_OK(left);
    EXPECT_EQ(left->size(), tokens_failed ? 0u : 4u);
    for (const directory_entry& entry : *left)
      EXPECT_TRUE(entry.name.starts_with("out_") && entry.name.ends_with(".bin")) << entry.name;
  }
  EXPECT_EQ(failures, 9);  // four shards' tokens and headers, and the side file
}

TEST(shard_writer, takes_32_bits_for_a_large_vocabulary) {
  folder f;
  shard_writer writer(real_file_system(), {f / "out.bin", 70000, 10});
  const std::vector<std::uint32_t> tokens = {0, 65536, 69999};
  ASSERT_OK(writer.add(tokens));
  ASSERT_OK(writer.finish());
  EXPECT_EQ(read_all(f / "out.bin"), llmc32(tokens));
}

// G-17 b: never wrapped.
TEST(shard_writer, refuses_an_id_that_does_not_fit) {
  folder f;
  {
    shard_writer writer(real_file_system(), {f / "out.bin", 65536, 10});
    const std::vector<std::uint32_t> tokens = {65535, 65536};
    expect_error(writer.add(tokens), exit_code::bad_data, {"65536", "vocabulary of 65536"});
  }
  EXPECT_TRUE(names_in(f).empty());
}

TEST(side_file, belongs_to_every_shard_of_its_set) {
  EXPECT_EQ(side_file_path("a/out.bin"), "a/out.json");
  EXPECT_EQ(side_file_path("a/out_000012.bin"), "a/out.json");
  EXPECT_EQ(side_file_path("a/out_12.bin"), "a/out_12.json");
  EXPECT_EQ(side_file_path("out"), "out.json");
}

TEST(side_file, with_a_wrong_field_is_refused) {
  const side_file side{"byte", 257, 256, 1, 2, "00", {{"a.bin", 2, "00"}}};
  std::string text = to_json(side);
  EXPECT_EQ(*parse_side_file(text, "a.json"), side);
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 2");
  expect_error(parse_side_file(text, "a.json"), exit_code::bad_data, {"a.json", "version"});
}

TEST(inspect, tells_what_text_and_its_packed_form_hold) {
  folder f;
  const auto in = f.write("a.txt", "hello world");
  ASSERT_OK(pack(packing(in, f / "out.bin"), real_file_system()));
  inspect_options options;
  options.seq_len = 5;
  options.sources = {{in, data_format::automatic, "text"}};
  const auto text = inspect(options, real_file_system());
  ASSERT_OK(text);
  options.sources = {{f / "out.bin", data_format::automatic, "text"}};
  const auto packed = inspect(options, real_file_system());
  ASSERT_OK(packed);
  EXPECT_EQ(packed->tokens, 12u);
  EXPECT_EQ(packed->files[0].largest_id, 256u);
  ASSERT_TRUE(packed->files[0].side);
  EXPECT_EQ(packed->files[0].side->documents, 1u);
  EXPECT_EQ(packed->hash, text->hash);
  EXPECT_EQ(packed->hash.hex(), packed->files[0].side->hash);
  ASSERT_TRUE(packed->windows && packed->windows->digest);
  EXPECT_EQ(packed->windows->windows, 2u);
  EXPECT_EQ(packed->windows->unused_tokens, 1u);
  EXPECT_EQ(packed->windows->digest, text->windows->digest);
}

TEST(inspect, notices_a_token_file_that_its_side_file_does_not_describe) {
  folder f;
  ASSERT_OK(pack(packing(f.write("a.txt", "hello world"), f / "out.bin"), real_file_system()));
  inspect_options options;
  options.sources = {{f / "out.bin", data_format::automatic, "text"}};
  std::string bytes = read_all(f / "out.bin");
  bytes[1024] = 'j';
  f.write("out.bin", bytes);
  expect_error(inspect(options, real_file_system()), exit_code::bad_data,
               {"out.bin", "hash", "out.json"});
  f.write("out.bin", llmc16({1}));
  expect_error(inspect(options, real_file_system()), exit_code::bad_data,
               {"out.bin", "1 tokens and not 12"});
}

TEST(inspect, reports_too_little_data_without_failing) {
  folder f;
  inspect_options options;
  options.sources = {{f.write("a.bin", llmc16({1, 2, 3})), data_format::automatic, "text"}};
  options.seq_len = 3;
  const auto report = inspect(options, real_file_system());
  ASSERT_OK(report);
  EXPECT_EQ(report->windows->windows, 0u);
  EXPECT_EQ(report->windows->unused_tokens, 3u);
  EXPECT_FALSE(report->windows->digest);
}

TEST(inspect, checks_ids_when_told_the_vocabulary) {
  folder f;
  inspect_options options;
  options.sources = {{f.write("a.bin", llmc16({1, 2, 3})), data_format::automatic, "text"}};
  options.vocabulary = 3;
  expect_error(inspect(options, real_file_system()), exit_code::bad_data,
               {"token 2 ", "is 3", "3 entries"});
}

}  // namespace
}  // namespace troupe::model::data
