#include "model/data/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/data/digest.hpp"

namespace troupe::model::data {
namespace {

constexpr std::size_t piece_tokens = std::size_t{1} << 18;

status read_through(const token_store& store, file_report& file, hasher& all) {
  std::vector<std::uint32_t> buffer(std::min<std::uint64_t>(piece_tokens, file.facts.tokens));
  hasher own;
  for (std::uint64_t at = 0; at < file.facts.tokens; at += buffer.size()) {
    const auto part =
        std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), file.facts.tokens - at));
    if (auto read = store.read(file.facts.stream, file.facts.first_token + at, part); !read)
      return read;
    for (const std::uint32_t token : part) file.largest_id = std::max(file.largest_id, token);
    own.add(std::as_bytes(part));
    all.add(std::as_bytes(part));
  }
  file.hash = own.finish();
  return done{};
}

status compare_with_side_file(file_system& files, file_report& file) {
  if (file.facts.format != data_format::llmc) return done{};
  auto found = find_side_file(files, file.facts.path);
  if (!found) return found.failure();
  if (!*found) return done{};
  file.side = std::move(**found);
  const auto contradiction = [&](const std::string& what) {
    return error{exit_code::bad_data,
                 fmt::format("data file {}: {}, the file was changed after {} was "
                             "written",
                             file.facts.path, what, side_file_path(file.facts.path))};
  };
  for (const side_file::shard& shard : file.side->shards) {
    if (shard.name != base_name(file.facts.path)) continue;
    if (shard.tokens != file.facts.tokens)
      return contradiction(
          fmt::format("holds {} tokens and not {}", file.facts.tokens, shard.tokens));
    if (shard.hash != file.hash.hex())
      return contradiction(
          fmt::format("its tokens have the hash {} and not {}", file.hash.hex(), shard.hash));
  }
  return done{};
}

}  // namespace

result<data_report> inspect(const inspect_options& options, file_system& files) {
  auto store = token_store::open(options.sources, options.add_eos);
  if (!store) return store.failure();
  data_report report;
  report.tokens = store->tokens();
  report.notes = store->notes();
  hasher all;
  for (const file_facts& facts : store->files()) {
    file_report& file = report.files.emplace_back();
    file.facts = facts;
    if (auto read = read_through(*store, file, all); !read) return read.failure();
    if (auto same = compare_with_side_file(files, file); !same) return same.failure();
  }
  report.hash = all.finish();
  if (options.vocabulary != 0)
    if (auto good = store->check_ids(options.vocabulary); !good) return good.failure();

  if (options.seq_len == 0) return report;
  std::vector<std::uint64_t> lengths;
  for (std::size_t i = 0; i < store->streams(); ++i) lengths.push_back(store->tokens_of(i));
  const window_map map(lengths, options.seq_len);
  report.windows = window_report{options.seq_len, map.windows(), map.unused_tokens(), std::nullopt};
  if (map.windows() == 0) return report;
  const auto digest = window_digest(*store, map);
  if (!digest) return digest.failure();
  report.windows->digest = *digest;
  return report;
}

}  // namespace troupe::model::data
