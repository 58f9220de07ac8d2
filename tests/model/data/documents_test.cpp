// G-19: text files as people really have them.
#include "model/data/documents.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/model/data/data_files.hpp"

namespace troupe::model::data {
namespace {

class collected final : public document_sink {
 public:
  std::vector<std::string> documents;
  status add(std::string_view bytes) override {
    current_ += bytes;
    return done{};
  }
  status end_document() override {
    documents.push_back(std::move(current_));
    current_.clear();
    return done{};
  }

 private:
  std::string current_;
};

struct outcome {
  result<document_facts> facts;
  std::vector<std::string> documents;
};
outcome text_of(const std::string& path) {
  collected sink;
  auto facts = read_text_file(path, sink);
  return {std::move(facts), std::move(sink.documents)};
}
outcome lines_of(const std::string& path, const std::string& key = "text") {
  collected sink;
  auto facts = read_json_lines(path, key, sink);
  return {std::move(facts), std::move(sink.documents)};
}

using documents = std::vector<std::string>;

TEST(text_file, is_one_document_byte_for_byte) {
  folder f;
  const std::string text = "Grüße, 世界\nno newline at the end 🙂";
  const auto got = text_of(f.write("a.txt", text));
  ASSERT_OK(got.facts);
  EXPECT_EQ(got.documents, documents{text});
  EXPECT_EQ(got.facts->text_bytes, text.size());
  EXPECT_EQ(got.facts->documents, 1u);
  EXPECT_FALSE(got.facts->had_crlf);
}

TEST(text_file, loses_its_byte_order_mark_and_nothing_else) {
  folder f;
  const auto got = text_of(f.write("a.txt", "\xEF\xBB\xBFone\ntwo\n"));
  ASSERT_OK(got.facts);
  EXPECT_EQ(got.documents, documents{"one\ntwo\n"});
  EXPECT_TRUE(got.facts->had_byte_order_mark);
}

TEST(text_file, keeps_cr_lf_and_says_so) {
  folder f;
  const auto got = text_of(f.write("a.txt", "one\r\ntwo\r\n"));
  ASSERT_OK(got.facts);
  EXPECT_EQ(got.documents, documents{"one\r\ntwo\r\n"});
  EXPECT_TRUE(got.facts->had_crlf);
}

TEST(text_file, sees_cr_lf_across_the_border_of_two_pieces) {
  folder f;
  std::string text((1 << 20) - 1, 'x');
  const auto got = text_of(f.write("a.txt", text + "\r\nrest"));
  ASSERT_OK(got.facts);
  EXPECT_TRUE(got.facts->had_crlf);
}

TEST(text_file, may_hold_zero_bytes) {
  folder f;
  const std::string text("one\0two\0three", 13);
  const auto got = text_of(f.write("a.txt", text));
  ASSERT_OK(got.facts);
  EXPECT_EQ(got.documents, documents{text});
}

TEST(text_file, in_utf_16_is_refused_by_name) {
  folder f;
  using std::string_view_literals::operator""sv;
  for (const auto text : {"\xFF\xFEh\0i\0"sv, "h\0i\0\n\0"sv}) {
    const auto path = f.write("a.txt", text);
    expect_error(text_of(path).facts, exit_code::bad_data,
                 {path, "UTF-16 (little-endian)", "iconv -f UTF-16"});
  }
}

TEST(text_file, with_a_latin_1_byte_is_refused_with_its_offset) {
  folder f;
  std::string text(150000, 'a');
  text[100000] = '\xE9';
  const auto path = f.write("a.txt", text);
  expect_error(text_of(path).facts, exit_code::bad_data, {path, "UTF-8", "byte 100000:", "0xE9"});
}

TEST(text_file, counts_offsets_in_the_file_and_not_behind_the_byte_order_mark) {
  folder f;
  const auto path = f.write("a.txt", "\xEF\xBB\xBFok\x80");
  expect_error(text_of(path).facts, exit_code::bad_data, {"byte 5:", "0x80"});
}

TEST(text_file, may_have_characters_across_pieces_and_names_bad_bytes_far_in) {
  folder f;
  for (int shift = 0; shift < 4; ++shift) {
    std::string text(shift, 'x');
    while (text.size() < (3u << 20)) text += "🙂";
    const auto good = text_of(f.write("a.txt", text));
    ASSERT_OK(good.facts);
    EXPECT_EQ(good.documents, documents{text});
    text[(2u << 20) + 5] = '!';
    const std::size_t begin = shift + ((2u << 20) + 5 - shift) / 4 * 4;
    const auto path = f.write("a.txt", text);
    expect_error(text_of(path).facts, exit_code::bad_data,
                 {fmt::format("byte {}:", begin + (begin == (2u << 20) + 5 ? 1 : 0))});
  }
}

TEST(text_file, that_ends_inside_a_character_is_refused) {
  folder f;
  expect_error(text_of(f.write("a.txt", "abc\xE2\x82")).facts, exit_code::bad_data,
               {"byte 3:", "cut off"});
}

TEST(text_file, that_is_empty_or_missing_or_no_file_is_refused_with_the_cause) {
  folder f;
  expect_error(text_of(f.write("a.txt", "")).facts, exit_code::bad_data, {f / "a.txt", "empty"});
  expect_error(text_of(f.write("b.txt", "\xEF\xBB\xBF")).facts, exit_code::bad_data,
               {f / "b.txt", "byte-order mark"});
  expect_error(text_of(f / "none.txt").facts, exit_code::bad_data,
               {f / "none.txt", "no such file"});
  expect_error(text_of(f / ".").facts, exit_code::bad_data, {"folder"});
  expect_error(text_of("/dev/null").facts, exit_code::bad_data,
               {"/dev/null", "not a regular file"});
}

TEST(text_file, stops_with_the_error_of_its_sink) {
  struct full final : document_sink {
    status add(std::string_view) override { return error{exit_code::io, "disk full"}; }
    status end_document() override { return done{}; }
  } sink;
  folder f;
  expect_error(read_text_file(f.write("a.txt", "abc"), sink), exit_code::io, {"disk full"});
}

TEST(json_lines, are_documents_one_a_line) {
  folder f;
  const auto got =
      lines_of(f.write("a.jsonl",
                       "{\"text\": \"one\", \"id\": 7}\n\n \t\r\n{\"id\": [{}], \"text\": "
                       "\"t\\u00e4\\n\\ud83d\\ude42\\u0000\"}\r\n{\"text\": \"\"}"));
  ASSERT_OK(got.facts);
  EXPECT_EQ(got.documents, (documents{"one", std::string("tä\n🙂\0", 9), ""}));
  EXPECT_EQ(got.facts->documents, 3u);
  EXPECT_EQ(got.facts->blank_lines, 2u);
}

TEST(json_lines, take_the_key_they_are_told) {
  folder f;
  EXPECT_EQ(
      lines_of(f.write("a.jsonl", "{\"text\": 1, \"content\": \"x\"}\n"), "content").documents,
      documents{"x"});
}

TEST(json_lines, may_be_longer_than_any_buffer) {
  folder f;
  const std::string longest(5u << 20, 'y');
  const auto got = lines_of(
      f.write("a.jsonl", fmt::format("{{\"text\":\"{}\"}}\n{{\"text\":\"z\"}}\n", longest)));
  ASSERT_OK(got.facts);
  EXPECT_EQ(got.documents, (documents{longest, "z"}));
}

TEST(json_lines, that_are_wrong_are_named_by_line_and_cause) {
  folder f;
  const auto expect_line_2 = [&](const std::string& line, const std::string& cause) {
    const auto path =
        f.write("a.jsonl", "{\"text\": \"fine\"}\n" + line + "\n{\"text\": \"fine\"}\n");
    expect_error(lines_of(path).facts, exit_code::bad_data, {path, "line 2:", cause});
  };
  expect_line_2("{\"text\": \"x\"", "not valid JSON");
  expect_line_2("{\"text\": \"x\"} {\"text\": \"y\"}", "not valid JSON");
  expect_line_2("\"text\"", "object is needed, this is string");
  expect_line_2("{\"txt\": \"x\"}", "no key 'text' (it has: txt)");
  expect_line_2("{}", "no key 'text' (it has: none)");
  expect_line_2("{\"text\": null}", "'text' has to be a string, it is null");
  expect_line_2("{\"text\": \"\\ud800\"}", "not valid JSON");
  expect_line_2("{\"text\": \"x\", \"n\": 1e999}", "not valid JSON");
  const auto unfinished = f.write("b.jsonl", "{\"text\": \"fine\"}\n{\"text\": \"cut");
  expect_error(lines_of(unfinished).facts, exit_code::bad_data,
               {unfinished, "line 2:", "not valid JSON"});
}

TEST(json_lines, with_an_invalid_byte_are_refused_with_its_offset) {
  folder f;
  const auto path = f.write("a.jsonl", "{\"text\": \"a\xE9z\"}\n");
  expect_error(lines_of(path).facts, exit_code::bad_data, {path, "byte 11:", "0xE9"});
}

TEST(json_lines, that_are_all_blank_hold_no_document) {
  folder f;
  expect_error(lines_of(f.write("a.jsonl", "\n\r\n  \n")).facts, exit_code::bad_data,
               {"no document"});
}

TEST(json_lines, without_the_last_newline_or_with_a_byte_order_mark_lose_nothing) {
  folder f;
  const auto got = lines_of(f.write("a.jsonl", "\xEF\xBB\xBF{\"text\": \"a\"}\n{\"text\": \"b\"}"));
  ASSERT_OK(got.facts);
  EXPECT_EQ(got.documents, (documents{"a", "b"}));
}

}  // namespace
}  // namespace troupe::model::data
