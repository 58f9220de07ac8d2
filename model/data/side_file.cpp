#include "model/data/side_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "config/base/json.hpp"
#include "model/data/shard_writer.hpp"

namespace troupe::model::data {
namespace {

constexpr std::uint64_t longest_side_file = std::uint64_t{64} << 20;

// "out" for "out_000003".
std::string without_shard_number(const std::string& stem) {
  constexpr std::size_t suffix = 7;
  if (stem.size() <= suffix || stem[stem.size() - suffix] != '_') return stem;
  const bool digits = std::all_of(stem.end() - suffix + 1, stem.end(),
                                  [](unsigned char c) { return std::isdigit(c) != 0; });
  return digits ? stem.substr(0, stem.size() - suffix) : stem;
}

}  // namespace

std::string to_json(const side_file& side) {
  json_page page;
  page.u64("version", 1).text("format", "llm.c").text("tokenizer", side.tokenizer);
  page.u64("vocabulary_size", side.vocabulary_size);
  if (side.eod_token)
    page.u64("eod_token", *side.eod_token);
  else
    page.null("eod_token");
  page.u64("documents", side.documents).u64("tokens", side.tokens).text("hash", side.hash);
  page.begin_array("shards");
  for (const side_file::shard& s : side.shards)
    page.begin_element().text("name", s.name).u64("tokens", s.tokens).text("hash", s.hash).end();
  page.end();
  return page.finish();
}

result<side_file> parse_side_file(const std::string& text, const std::string& path) {
  auto parsed = parse_json(text, path);
  if (!parsed) return parsed.failure();
  json_fields fields(*parsed, path);
  side_file side;
  if (fields.u64("version") != 1) fields.fail("version", "only version 1 is known");
  if (fields.text("format") != "llm.c") fields.fail("format", "only \"llm.c\" is known");
  side.tokenizer = fields.text("tokenizer");
  side.vocabulary_size = fields.u64("vocabulary_size");
  if (const auto eod = fields.any("eod_token"); eod.is_number_unsigned())
    side.eod_token = eod.get<std::uint64_t>();
  else if (!eod.is_null())
    fields.fail("eod_token", "has to be a token id or null");
  side.documents = fields.u64("documents");
  side.tokens = fields.u64("tokens");
  side.hash = fields.text("hash");
  fields.each("shards", [&](json_fields& shard) {
    side.shards.push_back({shard.text("name"), shard.u64("tokens"), shard.text("hash")});
  });
  if (auto good = fields.finish(); !good) return good.failure();
  return side;
}

std::string side_file_path(const std::string& token_file) {
  return fmt::format("{}.json", without_shard_number(stem_of(token_file)));
}

result<std::optional<side_file>> find_side_file(file_system& files, const std::string& token_file) {
  const std::string path = side_file_path(token_file);
  const auto there = files.exists(path);
  if (!there) return there.failure();
  if (!*there) return std::optional<side_file>();
  const auto text = read_file(files, path, longest_side_file);
  if (!text) return text.failure();
  // A JSON file of another program may have that name; only one that says llm.c is ours to check.
  if (text->find("\"llm.c\"") == std::string::npos) return std::optional<side_file>();
  auto side = parse_side_file(*text, path);
  if (!side) return side.failure();
  const std::string name = base_name(token_file);
  const bool listed = std::any_of(side->shards.begin(), side->shards.end(),
                                  [&](const auto& shard) { return shard.name == name; });
  return listed ? std::optional(std::move(*side)) : std::optional<side_file>();
}

}  // namespace troupe::model::data
