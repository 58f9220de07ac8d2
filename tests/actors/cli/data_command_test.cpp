#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/actors/cli/run_command.hpp"
#include "tests/model/data/data_files.hpp"

namespace troupe::actors::cli {
namespace {

using model::data::folder;
using model::data::llmc16;

outcome data(const std::vector<std::string>& args) { return run_command(data_command, args); }

TEST(data_command, packs_and_tells_about_it) {
  folder f;
  const auto packed = data({"pack", f.write("a.txt", "one\r\n"), "--out", f / "a.bin"});
  EXPECT_EQ(packed.code, 0) << packed.err;
  EXPECT_NE(packed.out.find("6 tokens, vocabulary 257"), std::string::npos) << packed.out;
  EXPECT_NE(packed.err.find("note: " + (f / "a.txt") + ": lines end with CR LF"), std::string::npos)
      << packed.err;

  const auto info = data({"info", f / "a.bin", "--json", "--seq-len", "2"});
  EXPECT_EQ(info.code, 0) << info.err;
  const auto json = nlohmann::json::parse(info.out);
  EXPECT_EQ(json["tokens"], 6);
  EXPECT_EQ(json["windows"], 2);
  EXPECT_EQ(json["unused_tokens"], 1);
  EXPECT_EQ(json["files"][0]["path"], f / "a.bin");
  EXPECT_EQ(json["files"][0]["format"], "llmc");
  EXPECT_EQ(json["files"][0]["token_bytes"], 2);
  EXPECT_EQ(json["files"][0]["largest_id"], 256);
  EXPECT_EQ(json["files"][0]["side_file"]["tokenizer"], "byte");
  EXPECT_EQ(json["digest"].get<std::string>().size(), 32u);
}

TEST(data_command, prints_a_table_for_people) {
  folder f;
  const auto info = data({"info", f.write("a.txt", "hello"), "--no-eos", "--seq-len", "2"});
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_NE(info.out.find(f / "a.txt"), std::string::npos);
  EXPECT_NE(info.out.find("1 files, 5 tokens"), std::string::npos) << info.out;
  EXPECT_NE(info.out.find("2 windows of 2 tokens, 0 tokens unused"), std::string::npos) << info.out;
}

TEST(data_command, takes_files_by_name_and_not_by_the_order_given) {
  folder f;
  const auto a = f.write("a.txt", "first"), b = f.write("b.txt", "second");
  ASSERT_EQ(data({"pack", b, a, "--out", f / "x.bin"}).code, 0);
  ASSERT_EQ(data({"pack", f / "?.txt", "--out", f / "y.bin"}).code, 0);
  EXPECT_EQ(model::data::read_all(f / "x.bin"), model::data::read_all(f / "y.bin"));
}

TEST(data_command, ends_with_65_and_the_place_for_bad_data) {
  folder f;
  const auto bad = data({"info", f.write("a.txt", "caf\xE9 au lait")});
  EXPECT_EQ(bad.code, 65);
  EXPECT_NE(bad.err.find("byte 3:"), std::string::npos) << bad.err;
  EXPECT_EQ(data({"info", f / "none.bin"}).code, 65);
  EXPECT_EQ(data({"pack", f / "*.txt.none", "--out", f / "x.bin"}).code, 65);
  const auto range = data({"info", f.write("a.bin", llmc16({1, 300})), "--vocab-size", "257"});
  EXPECT_EQ(range.code, 65);
  EXPECT_NE(range.err.find("is 300"), std::string::npos) << range.err;
}

TEST(data_command, ends_with_64_for_a_wrong_command_line) {
  folder f;
  EXPECT_EQ(data({}).code, 64);
  const auto misspelt = data({"pakc"});
  EXPECT_EQ(misspelt.code, 64);
  EXPECT_NE(misspelt.err.find("did you mean data pack?"), std::string::npos) << misspelt.err;
  EXPECT_EQ(data({"pack", f.write("a.txt", "x")}).code, 64) << "--out is missing";
  EXPECT_EQ(data({"info"}).code, 64);
  const auto option = data({"info", f / "a.txt", "--seq-length", "4"});
  EXPECT_EQ(option.code, 64);
  EXPECT_NE(option.err.find("--seq-len"), std::string::npos) << option.err;
  EXPECT_EQ(data({"info", f / "a.txt", "--seq-len", "0"}).code, 64);
}

TEST(data_command, helps_on_stdout) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"--help"}, {"pack", "--help"}, {"info", "-h"}}) {
    const auto help = data(args);
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.out.find("troupe data"), std::string::npos);
    EXPECT_TRUE(help.err.empty()) << help.err;
  }
}

}  // namespace
}  // namespace troupe::actors::cli
