#include "model/data/pack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/data/documents.hpp"
#include "model/data/paths.hpp"
#include "model/data/side_file.hpp"

namespace troupe::model::data {
namespace {

class packing_sink final : public document_sink {
 public:
  packing_sink(shard_writer& writer, bool add_eos) : writer_(writer), add_eos_(add_eos) {}

  status add(std::string_view bytes) override {
    std::array<std::uint32_t, 4096> tokens;
    while (!bytes.empty()) {
      const std::size_t n = std::min(bytes.size(), tokens.size());
      for (std::size_t i = 0; i < n; ++i) tokens[i] = static_cast<unsigned char>(bytes[i]);
      if (auto added = pass_on({tokens.data(), n}); !added) return added;
      bytes.remove_prefix(n);
    }
    return done{};
  }
  status end_document() override {
    if (!add_eos_) return done{};
    return pass_on(std::span(&byte_end_of_text, 1));
  }

  std::uint64_t tokens() const { return tokens_; }
  hash128 hash() const { return hash_.finish(); }

 private:
  status pass_on(std::span<const std::uint32_t> tokens) {
    tokens_ += tokens.size();
    hash_.add(std::as_bytes(tokens));
    return writer_.add(tokens);
  }

  shard_writer& writer_;
  bool add_eos_;
  std::uint64_t tokens_ = 0;
  hasher hash_;
};

// Names that an earlier pack to the same place has left: a pattern would take them for parts of the
// new set.
result<std::vector<std::string>> existing_files(file_system& files, const std::string& out) {
  const std::string folder = parent_path(out), side = base_name(side_file_path(out));
  const auto entries = files.list(folder);
  if (!entries) return entries.failure();
  std::vector<std::string> found;
  for (const directory_entry& entry : *entries) {
    const std::string path = join_path(folder, entry.name);
    const std::string with_same_folder = join_path(parent_path(out), base_name(side));
    const bool shard = entry.name.ends_with(".bin") && base_name(side_file_path(path)) == side;
    if (entry.name == base_name(out) || entry.name == side || shard) found.push_back(path);
  }
  return found;
}

status remove_stale(file_system& files, const std::vector<std::string>& existing,
                    const pack_report& report) {
  for (const std::string& path : existing) {
    const bool replaced =
        base_name(path) == base_name(report.side_file) ||
        std::any_of(report.shards.begin(), report.shards.end(),
                    [&](const auto& s) { return base_name(s.path) == base_name(path); });
    if (replaced) continue;
    if (auto removed = files.remove(path); !removed) return removed;
  }
  return done{};
}

side_file describe(const pack_report& report, bool add_eos) {
  side_file side;
  side.tokenizer = "byte";
  side.vocabulary_size = report.vocabulary;
  if (add_eos) side.eod_token = byte_end_of_text;
  side.documents = report.documents;
  side.tokens = report.tokens;
  side.hash = report.hash.hex();
  for (const written_shard& s : report.shards)
    side.shards.push_back({base_name(s.path), s.tokens, s.hash.hex()});
  return side;
}

status pack_file(const std::string& path, const source& from, packing_sink& sink,
                 pack_report& report) {
  const auto file = identify(path, from.format);
  if (!file) return file.failure();
  if (file->format == data_format::llmc)
    return error{exit_code::bad_data, fmt::format("data file {}: is a token file already", path)};
  const auto read = file->format == data_format::jsonl ? read_json_lines(path, from.text_key, sink)
                                                       : read_text_file(path, sink);
  if (!read) return read.failure();
  ++report.files;
  report.documents += read->documents;
  for (std::string& note : notes_about(path, *read)) report.notes.push_back(std::move(note));
  return done{};
}

}  // namespace

result<pack_report> pack(const pack_options& options, file_system& files) {
  const auto existing = existing_files(files, options.out);
  if (!existing) return existing.failure();
  if (!existing->empty() && !options.replace_existing)
    return error{exit_code::cannot_use,
                 fmt::format("{} is there already; choose another name or replace it with --force",
                             existing->front())};

  pack_report report;
  report.vocabulary = byte_vocabulary(options.add_eos);
  report.side_file = side_file_path(options.out);
  shard_writer writer(files, {options.out, report.vocabulary, options.shard_tokens});
  packing_sink sink(writer, options.add_eos);
  for (const source& from : options.sources) {
    const auto paths = expand_paths(from.path);
    if (!paths) return paths.failure();
    for (const std::string& path : *paths)
      if (auto packed = pack_file(path, from, sink, report); !packed) return packed.failure();
  }
  report.tokens = sink.tokens();
  report.hash = sink.hash();
  if (report.tokens == 0)
    return error{exit_code::bad_data,
                 fmt::format("nothing to pack: {} documents hold no token", report.documents)};

  auto shards = writer.finish();
  if (!shards) return shards.failure();
  report.shards = std::move(*shards);
  if (auto removed = remove_stale(files, *existing, report); !removed) return removed.failure();
  if (auto written = replace(files, report.side_file, to_json(describe(report, options.add_eos)));
      !written)
    return written.failure();
  return report;
}

}  // namespace troupe::model::data
