#include "model/data/tokens.hpp"

#include <gtest/gtest.h>

#include "model/data/paths.hpp"
#include "tests/model/data/data_files.hpp"

namespace troupe::model::data {
namespace {

std::vector<std::uint32_t> tokens_of(const token_store& store, std::size_t stream = 0) {
  std::vector<std::uint32_t> tokens(store.tokens_of(stream));
  const auto read = store.read(stream, 0, tokens);
  EXPECT_TRUE(read) << read.failure().message;
  return tokens;
}

result<token_store> opened(const std::string& path, data_format format = data_format::automatic,
                           bool add_eos = true) {
  const std::vector<source> sources = {{path, format, "text"}};
  return token_store::open(sources, add_eos);
}

TEST(token_store, makes_one_token_of_each_byte_and_ends_documents) {
  folder f;
  const auto path = f.write("a.txt", "aß\n");
  EXPECT_EQ(tokens_of(*opened(path)), (std::vector<std::uint32_t>{'a', 0xC3, 0x9F, '\n', 256}));
  EXPECT_EQ(tokens_of(*opened(path, data_format::text, false)),
            (std::vector<std::uint32_t>{'a', 0xC3, 0x9F, '\n'}));
}

// G-19: a mark changes nothing, CR LF is kept and said.
TEST(token_store, gives_text_with_a_byte_order_mark_the_same_tokens) {
  folder f;
  const auto plain = opened(f.write("a.txt", "one\ntwo\n"));
  const auto marked = opened(f.write("b.txt", "\xEF\xBB\xBFone\ntwo\n"));
  ASSERT_OK(marked);
  EXPECT_EQ(tokens_of(*plain), tokens_of(*marked));
  EXPECT_TRUE(plain->notes().empty());
  ASSERT_EQ(marked->notes().size(), 1u);
  EXPECT_NE(marked->notes()[0].find("byte-order mark was dropped"), std::string::npos);

  const auto windows = opened(f.write("c.txt", "one\r\ntwo\r\n"));
  ASSERT_OK(windows);
  EXPECT_EQ(windows->tokens(), plain->tokens() + 2);
  ASSERT_EQ(windows->notes().size(), 1u);
  EXPECT_NE(windows->notes()[0].find("CR LF"), std::string::npos);
}

TEST(token_store, describes_its_files) {
  folder f;
  f.write("a.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"c\"}\n");
  f.write("b.bin", llmc32({5, 6, 7}));
  const auto store = opened(f / "*");
  ASSERT_OK(store);
  ASSERT_EQ(store->files().size(), 2u);
  const file_facts& lines = store->files()[0];
  EXPECT_EQ(lines.path, f / "a.jsonl");
  EXPECT_EQ(lines.format, data_format::jsonl);
  EXPECT_EQ(lines.tokens, 5u);
  EXPECT_EQ(lines.documents, 2u);
  const file_facts& shard = store->files()[1];
  EXPECT_EQ(shard.format, data_format::llmc);
  EXPECT_EQ(shard.token_bytes, 4u);
  EXPECT_EQ(shard.tokens, 3u);
  EXPECT_EQ(shard.bytes, 1036u);
  EXPECT_FALSE(shard.documents);
}

TEST(token_store, takes_a_format_from_the_magic_and_the_ending) {
  folder f;
  EXPECT_EQ(identify(f.write("shard", llmc16({1})), data_format::automatic)->format,
            data_format::llmc);
  EXPECT_EQ(identify(f.write("a.ndjson", "{}"), data_format::automatic)->format,
            data_format::jsonl);
  EXPECT_EQ(identify(f.write("README", "x"), data_format::automatic)->format, data_format::text);
  EXPECT_EQ(identify(f.write("a.json", "{}"), data_format::jsonl)->format, data_format::jsonl);
}

TEST(token_store, refuses_formats_it_cannot_read_by_name) {
  folder f;
  const auto refused = [&](const std::string& name, const std::string& cause) {
    const auto path = f.write(name, "some bytes");
    expect_error(opened(path), exit_code::bad_data, {path, cause});
  };
  refused("train.bin", "nanoGPT");
  refused("a.npy", "NumPy");
  refused("meta.pkl", "pickles are never read");
  refused("a.parquet", "JSON lines");
  refused("a.txt.gz", "unpack");
  refused("a.json", "format = \"jsonl\"");
  const auto shard = f.write("b.bin", llmc16({1, 2}));
  expect_error(opened(shard, data_format::text), exit_code::bad_data, {shard, "llm.c", "'text'"});
  const auto text = f.write("c.txt", "plain text");
  expect_error(opened(text, data_format::llmc), exit_code::bad_data,
               {text, "not an llm.c token file"});
}

TEST(token_store, checks_ids_up_to_a_limit) {
  folder f;
  std::vector<std::uint16_t> tokens(1 << 20, 1);
  tokens.back() = 99;
  const auto store = opened(f.write("a.bin", llmc16(tokens)));
  ASSERT_OK(store);
  EXPECT_FALSE(store->check_ids(99));
  EXPECT_TRUE(store->check_ids(99, 1 << 20)) << "the bad one lies behind the limit";
  EXPECT_TRUE(store->check_ids(100));
}

TEST(paths, are_sorted_by_their_bytes) {
  folder f;
  for (const char* name :
       {"b.txt", "B.txt", "a10.txt", "a9.txt", "\xC3\xA9.txt", "_.txt", "other.bin"})
    f.write(name, "x");
  const auto paths = expand_paths(f / "*.txt");
  ASSERT_OK(paths);
  EXPECT_EQ(*paths, (std::vector<std::string>{f / "B.txt", f / "_.txt", f / "a10.txt", f / "a9.txt",
                                              f / "b.txt", f / "\xC3\xA9.txt"}));
}

TEST(paths, that_exist_are_taken_literally) {
  folder f;
  f.write("a[1].txt", "x");
  f.write("a1.txt", "x");
  EXPECT_EQ(*expand_paths(f / "a[1].txt"), (std::vector<std::string>{f / "a[1].txt"}));
  EXPECT_EQ(*expand_paths(f / "a?.txt"), (std::vector<std::string>{f / "a1.txt"}));
}

TEST(paths, that_lead_nowhere_are_bad_data) {
  folder f;
  expect_error(expand_paths(f / "none.txt"), exit_code::bad_data, {f / "none.txt", "no such file"});
  expect_error(expand_paths(f / "*.txt"), exit_code::bad_data, {f / "*.txt", "matches no file"});
  expect_error(expand_paths(f / "**/a.txt"), exit_code::bad_data, {"'**'"});
  expect_error(expand_paths(""), exit_code::bad_data, {"empty"});
  expect_error(expand_paths(f.write("a.txt", "x") + "/b"), exit_code::bad_data,
               {"Not a directory"});
}

}  // namespace
}  // namespace troupe::model::data
