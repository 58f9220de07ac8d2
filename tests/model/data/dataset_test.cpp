#include "model/data/dataset.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/model/data/data_files.hpp"

namespace troupe::model::data {
namespace {

struct sequence {
  std::vector<std::int32_t> tokens, targets;
  std::size_t counted = 0;
  friend bool operator==(const sequence&, const sequence&) = default;
};

sequence at(const dataset& data, std::uint64_t position) {
  sequence s{std::vector<std::int32_t>(data.seq_len()), std::vector<std::int32_t>(data.seq_len()),
             0};
  const auto counted = data.fill(position, s.tokens, s.targets);
  EXPECT_TRUE(counted) << counted.failure().message;
  s.counted = counted ? *counted : 0;
  return s;
}

std::vector<sequence> all_windows(const dataset& data) {
  std::vector<sequence> all;
  for (std::uint64_t p = 0; p < data.windows(); ++p) all.push_back(at(data, p));
  return all;
}

dataset_options reading(const std::string& path, std::uint64_t seq_len) {
  dataset_options o;
  o.sources = {{path, data_format::automatic, "text"}};
  o.seq_len = seq_len;
  o.vocabulary = 257;
  o.shuffle = false;
  o.seed = 7;
  return o;
}

TEST(dataset, gives_each_token_and_the_one_after_it) {
  folder f;
  const auto data = dataset::open(reading(f.write("a.txt", "abcdefgh"), 4));
  ASSERT_OK(data);
  EXPECT_EQ(data->windows(), 2u);  // 9 tokens with end-of-text
  EXPECT_EQ(data->unused_tokens(), 0u);
  EXPECT_EQ(at(*data, 0), (sequence{{'a', 'b', 'c', 'd'}, {'b', 'c', 'd', 'e'}, 4}));
  EXPECT_EQ(at(*data, 1), (sequence{{'e', 'f', 'g', 'h'}, {'f', 'g', 'h', 256}, 4}));
  EXPECT_EQ(at(*data, 2), at(*data, 0)) << "the second epoch, in order";
}

TEST(dataset, one_token_too_few_is_an_error_with_tokens_found_and_needed) {
  folder f;
  const auto path = f.write("a.txt", "abcd");
  auto options = reading(path, 5);  // 5 tokens with end-of-text
  expect_error(dataset::open(options), exit_code::bad_data, {"5 tokens", "needs 6", path});
  options.seq_len = 4;
  ASSERT_OK(dataset::open(options));
}

TEST(dataset, fewer_windows_than_the_global_batch_repeat_by_epochs) {
  folder f;
  auto options = reading(f.write("a.txt", "abcdefgh"), 4);
  options.shuffle = true;
  const auto data = dataset::open(options);
  ASSERT_OK(data);
  for (std::uint64_t p = first_position(3, 12); p < first_position(4, 12); p += 2)
    EXPECT_EQ((std::set{at(*data, p).tokens[0], at(*data, p + 1).tokens[0]}),
              (std::set{'a' + 0, 'e' + 0}));
}

TEST(dataset, without_sources_is_a_config_error) {
  dataset_options options;
  options.seq_len = 4;
  options.vocabulary = 257;
  expect_error(dataset::open(options), exit_code::bad_config, {"data.sources"});
}

TEST(dataset, text_needs_a_vocabulary_that_holds_its_tokens) {
  folder f;
  auto options = reading(f.write("a.txt", "abcdefgh"), 4);
  options.vocabulary = 256;
  expect_error(dataset::open(options), exit_code::bad_config, {"vocab_size 256", "257", "add_eos"});
  options.add_eos = false;
  const auto data = dataset::open(options);
  ASSERT_OK(data);
  EXPECT_EQ(data->tokens(), 8u);
}

// Exactly 25 global batches of 12, four epochs (G-05).
TEST(dataset, trains_on_every_window_once_an_epoch_in_an_order_of_its_own) {
  folder f;
  std::vector<std::uint16_t> tokens(300 * 8 + 1);
  std::iota(tokens.begin(), tokens.end(), 0);
  auto options = reading(f.write("a.bin", llmc16(tokens)), 8);
  options.vocabulary = 2401;
  options.shuffle = true;
  const auto data = dataset::open(options);
  ASSERT_OK(data);
  ASSERT_EQ(data->windows(), 25u * 12u);

  std::vector<std::vector<std::int32_t>> epochs(4);
  for (std::uint64_t step = 1; step <= 100; ++step)
    for (std::uint64_t i = 0; i < 12; ++i) {
      const std::uint64_t p = first_position(step, 12) + i;
      EXPECT_EQ(data->epoch_of(p), (step - 1) / 25);
      epochs[(step - 1) / 25].push_back(at(*data, p).tokens[0]);
    }
  for (const auto& epoch : epochs) {
    std::set<std::int32_t> different(epoch.begin(), epoch.end());
    EXPECT_EQ(different.size(), 300u);
  }
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < a; ++b) EXPECT_NE(epochs[a], epochs[b]) << a << " and " << b;

  for (const std::uint64_t stop : {37u, 50u, 99u}) {
    const auto again = dataset::open(options);
    ASSERT_OK(again);
    for (std::uint64_t p = first_position(stop + 1, 12); p < first_position(101, 12); ++p)
      ASSERT_EQ(at(*again, p), at(*data, p)) << "resumed after step " << stop;
  }
}

TEST(dataset, text_and_the_same_tokens_in_a_token_file_give_the_same_windows_and_digest) {
  folder f;
  const std::string text = "To be, or not to be, that is the question.";
  std::vector<std::uint16_t> narrow;
  std::vector<std::uint32_t> wide;
  for (char c : text) narrow.push_back(static_cast<unsigned char>(c));
  narrow.push_back(256);
  wide.assign(narrow.begin(), narrow.end());
  auto options = reading(f.write("a.txt", text), 5);
  options.shuffle = true;
  const auto expected = dataset::open(options);
  ASSERT_OK(expected);
  const std::vector<std::string> others = {
      f.write("a.bin", llmc16(narrow)), f.write("b.bin", llmc32(wide)),
      f.write("a.jsonl", fmt::format("{{\"text\": \"{}\"}}\n", text))};
  for (const std::string& path : others) {
    options.sources = {{path, data_format::automatic, "text"}};
    const auto data = dataset::open(options);
    ASSERT_OK(data);
    EXPECT_EQ(all_windows(*data), all_windows(*expected)) << path;
    EXPECT_EQ(data->digest()->hex(), expected->digest()->hex()) << path;
  }
}

TEST(dataset, the_digest_changes_with_any_token_that_is_trained_on) {
  folder f;
  std::set<std::string> digests;
  std::vector<std::uint16_t> tokens(21);
  for (int changed = -1; changed < 21; ++changed) {
    auto now = tokens;
    if (changed >= 0) now[changed] = 5;
    const auto data = dataset::open(reading(f.write("a.bin", llmc16(now)), 5));
    ASSERT_OK(data);
    digests.insert(data->digest()->hex());
  }
  EXPECT_EQ(digests.size(), 22u);
  const auto other_length = dataset::open(reading(f.write("a.bin", llmc16(tokens)), 4));
  EXPECT_FALSE(digests.contains(other_length->digest()->hex()));
}

// 17 M tokens: more than the 64 MiB that are hashed as a whole. Evenly spaced pieces still begin
// with the first token and end with the last.
TEST(dataset, the_digest_of_long_data_samples_both_ends) {
  folder f;
  std::vector<std::uint16_t> tokens((std::size_t{17} << 20) + 1, 1);
  const auto digest_of = [&](std::size_t changed) {
    const std::uint16_t before = tokens[changed];
    tokens[changed] = 2;
    const auto data = dataset::open(reading(f.write("a.bin", llmc16(tokens)), 1024));
    tokens[changed] = before;
    return data->digest()->hex();
  };
  tokens[5] = 2;
  const std::string unchanged = digest_of(5);
  EXPECT_EQ(digest_of(5), unchanged);
  EXPECT_NE(digest_of(0), unchanged);
  EXPECT_NE(digest_of(tokens.size() - 1), unchanged);
}

TEST(dataset, the_order_in_a_folder_does_not_matter) {
  folder first, second;
  for (const char* name : {"b.txt", "a.txt", "c.txt"})
    first.write(name, std::string(name) + " holds this");
  for (const char* name : {"c.txt", "b.txt", "a.txt"})
    second.write(name, std::string(name) + " holds this");
  const auto one = dataset::open(reading(first / "*.txt", 6));
  const auto other = dataset::open(reading(second / "*.txt", 6));
  ASSERT_OK(one);
  ASSERT_OK(other);
  EXPECT_EQ(all_windows(*one), all_windows(*other));
  EXPECT_EQ(at(*one, 0).tokens, (std::vector<std::int32_t>{'a', '.', 't', 'x', 't', ' '}));
}

TEST(dataset, documents_are_one_stream_and_token_files_are_streams_of_their_own) {
  folder f;
  f.write("a.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"c\"}\n");  // a b 256 c 256
  auto options = reading(f / "a.jsonl", 4);
  f.write("x_0.bin", llmc16({1, 2, 3, 4, 5, 6, 7}));  // one window, two tokens left
  f.write("x_1.bin", llmc16({8, 9}));                 // too short for a window
  f.write("x_2.bin", llmc16({11, 12, 13, 14, 15}));   // exactly one window
  options.sources.push_back({f / "x_*.bin", data_format::llmc, ""});
  f.write("b.txt", "defg");  // joins the text: d is the last target of nothing but a window's start
  options.sources.push_back({f / "b.txt", data_format::text, ""});
  const auto data = dataset::open(options);
  ASSERT_OK(data);
  EXPECT_EQ(data->tokens(), 5u + 7u + 2u + 5u + 5u);
  ASSERT_EQ(data->windows(), 2u + 1u + 0u + 1u);
  EXPECT_EQ(data->unused_tokens(), 1u + 2u + 2u + 0u);
  EXPECT_EQ(at(*data, 0), (sequence{{'a', 'b', 256, 'c'}, {'b', 256, 'c', 256}, 4}));
  EXPECT_EQ(at(*data, 1), (sequence{{256, 'd', 'e', 'f'}, {'d', 'e', 'f', 'g'}, 4}));
  EXPECT_EQ(at(*data, 2), (sequence{{1, 2, 3, 4}, {2, 3, 4, 5}, 4}));
  EXPECT_EQ(at(*data, 3), (sequence{{11, 12, 13, 14}, {12, 13, 14, 15}, 4}));
  ASSERT_EQ(data->notes().size(), 1u);
  EXPECT_NE(data->notes()[0].find("5 of 24 tokens are not used"), std::string::npos)
      << data->notes()[0];
}

TEST(dataset, eod_mask_loss_leaves_out_the_target_of_an_end_of_document_token) {
  folder f;
  auto options =
      reading(f.write("a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"\"}\n{\"text\": \"bcd\"}\n"), 6);
  options.eod_mask_loss = true;
  const auto data = dataset::open(options);
  ASSERT_OK(data);
  EXPECT_EQ(at(*data, 0),
            (sequence{{'a', 256, 256, 'b', 'c', 'd'}, {256, -1, -1, 'c', 'd', 256}, 4}));
}

// G-08: a window without any counted target.
TEST(dataset, documents_of_end_of_text_only_have_no_counted_target) {
  folder f;
  std::string lines;
  for (int i = 0; i < 5; ++i) lines += "{\"text\": \"\"}\n";
  auto options = reading(f.write("a.jsonl", lines), 4);
  options.eod_mask_loss = true;
  const auto data = dataset::open(options);
  ASSERT_OK(data);
  EXPECT_EQ(at(*data, 0), (sequence{{256, 256, 256, 256}, {-1, -1, -1, -1}, 0}));
}

TEST(dataset, eod_mask_loss_on_token_files_asks_for_the_token) {
  folder f;
  auto options = reading(f.write("a.bin", llmc16({1, 9, 3, 4, 5})), 4);
  options.eod_mask_loss = true;
  expect_error(dataset::open(options), exit_code::bad_config, {"eod_token"});
  options.eod_token = 257;
  expect_error(dataset::open(options), exit_code::bad_config, {"eod_token 257", "257"});
  options.eod_token = 9;
  const auto data = dataset::open(options);
  ASSERT_OK(data);
  EXPECT_EQ(at(*data, 0), (sequence{{1, 9, 3, 4}, {9, -1, 4, 5}, 3}));
}

// G-17 c and d.
TEST(dataset, an_id_outside_the_vocabulary_is_named_with_file_position_and_value) {
  folder f;
  std::vector<std::uint16_t> narrow(600000, 3);
  narrow.back() = 1000;
  const auto path = f.write("a.bin", llmc16(narrow));
  auto options = reading(path, 64);
  options.vocabulary = 1000;
  expect_error(dataset::open(options), exit_code::bad_data,
               {path, "token 599999", "is 1000", "has 1000 entries"});
  options.vocabulary = 1001;
  ASSERT_OK(dataset::open(options));

  const auto wide = f.write("b.bin", llmc32({1, 2, 0xFFFFFFFFu, 4, 5}));
  options.sources[0].path = wide;
  options.seq_len = 4;
  expect_error(dataset::open(options), exit_code::bad_data,
               {wide, "token 2 ", "is 4294967295", "1001 entries"});
}

// Data that is too long to be checked at the start is checked before each window is used: here the
// file changes after it was opened.
TEST(dataset, a_bad_id_that_appears_later_stops_its_window_only) {
  folder f;
  const auto path = f.write("a.bin", llmc16({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  auto options = reading(path, 4);
  const auto data = dataset::open(options);
  ASSERT_OK(data);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(1024 + 2 * 7)
      .write("\xFF\xFF", 2);
  EXPECT_EQ(at(*data, 0).counted, 4u);
  std::vector<std::int32_t> tokens(4), targets(4);
  expect_error(data->fill(1, tokens, targets), exit_code::bad_data,
               {path, "token 7 ", "is 65535", "257 entries"});
}

TEST(dataset, a_file_shortened_while_in_use_is_an_error_and_not_a_crash) {
  folder f;
  const auto path = f.write("a.bin", llmc16({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const auto data = dataset::open(reading(path, 4));
  ASSERT_OK(data);
  std::filesystem::resize_file(path, 1030);
  std::vector<std::int32_t> tokens(4), targets(4);
  expect_error(data->fill(1, tokens, targets), exit_code::io, {path, "shortened"});
}

TEST(dataset, more_shards_than_open_files_are_read_all_the_same) {
  folder f;
  for (std::uint16_t i = 0; i < 300; ++i)
    f.write(fmt::format("s{}.bin", 1000 + i), llmc16({i, static_cast<std::uint16_t>(i + 1), 5}));
  auto options = reading(f / "s*.bin", 2);
  options.vocabulary = 1000;
  const auto data = dataset::open(options);
  ASSERT_OK(data);
  ASSERT_EQ(data->windows(), 300u);
  for (std::int32_t i = 0; i < 300; ++i)
    EXPECT_EQ(at(*data, i).tokens, (std::vector<std::int32_t>{i, i + 1}));
  std::filesystem::remove(f / "s1299.bin");
  std::vector<std::int32_t> tokens(2), targets(2);
  expect_error(data->fill(299, tokens, targets), exit_code::io, {"s1299.bin", "no such file"});
}

TEST(dataset, another_data_set_beside_it_moves_nothing) {
  folder f;
  auto options = reading(f.write("a.txt", "some text to train on, long enough for windows"), 4);
  options.shuffle = true;
  const auto training = dataset::open(options);
  const auto alone = all_windows(*training);
  options.shuffle = false;
  const auto validation = dataset::open(options);
  std::vector<sequence> beside;
  for (std::uint64_t p = 0; p < training->windows(); ++p) {
    at(*validation, p);
    beside.push_back(at(*training, p));
  }
  EXPECT_EQ(beside, alone);
}

}  // namespace
}  // namespace troupe::model::data
