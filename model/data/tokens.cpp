#include "model/data/tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/data/documents.hpp"
#include "model/data/paths.hpp"

namespace troupe::model::data {
namespace {

constexpr std::size_t max_open_shards = 256;
constexpr std::size_t scan_tokens = std::size_t{1} << 18;

class text_tokenizer final : public document_sink {
 public:
  text_tokenizer(std::vector<std::uint16_t>& tokens, bool add_eos)
      : tokens_(tokens), add_eos_(add_eos) {}

  status add(std::string_view bytes) override {
    const auto* first = reinterpret_cast<const unsigned char*>(bytes.data());
    tokens_.insert(tokens_.end(), first, first + bytes.size());
    return done{};
  }
  status end_document() override {
    if (add_eos_) tokens_.push_back(byte_end_of_text);
    return done{};
  }

 private:
  std::vector<std::uint16_t>& tokens_;
  bool add_eos_;
};

struct unreadable_format {
  const char* ending;
  const char* why;
};
constexpr std::array unreadable_formats = std::to_array<unreadable_format>({
    {".bin",
     "begins with no llm.c magic; token files without a header (nanoGPT) or with an index "
     "(Megatron) are not read in this version"},
    {".idx", "is a Megatron index, which is not read in this version"},
    {".npy", "NumPy files are not read in this version"},
    {".pkl", "pickles are never read"},
    {".parquet", "Parquet files are not read; write their text as JSON lines"},
    {".arrow", "Arrow files are not read; write their text as JSON lines"},
    {".gz", "is compressed; unpack it first"},
    {".zst", "is compressed; unpack it first"},
    {".xz", "is compressed; unpack it first"},
    {".zip", "is compressed; unpack it first"},
    {".json", "may be JSON lines or one JSON document; say format = \"jsonl\" or \"text\""},
});

}  // namespace

const char* name_of(data_format format) {
  switch (format) {
    case data_format::automatic:
      return "auto";
    case data_format::text:
      return "text";
    case data_format::jsonl:
      return "jsonl";
    case data_format::llmc:
      return "llmc";
  }
  fail_ensure("a data format without a name", __FILE__, __LINE__);
}

result<file_facts> identify(const std::string& path, data_format wanted) {
  auto file = input_file::open(path);
  if (!file) return file.failure();
  std::array<std::byte, 4> head{};
  const std::size_t n = std::min<std::uint64_t>(file->size(), head.size());
  if (auto got = file->read(0, std::span(head).first(n)); !got) return got.failure();
  const bool token_file = has_llmc_magic(std::span(head).first(n));
  const auto bad = [&](const std::string& cause) {
    return error{exit_code::bad_data, fmt::format("data file {}: {}", path, cause)};
  };

  file_facts facts;
  facts.path = path;
  facts.bytes = file->size();
  facts.format = wanted;
  if (wanted == data_format::automatic) {
    const bool lines = path.ends_with(".jsonl") || path.ends_with(".ndjson");
    facts.format = token_file ? data_format::llmc : lines ? data_format::jsonl : data_format::text;
    if (facts.format == data_format::text)
      for (const auto& known : unreadable_formats)
        if (path.ends_with(known.ending)) return bad(known.why);
  } else if (token_file && wanted != data_format::llmc) {
    // The magic is not valid UTF-8, so reading on would only name a bad byte.
    return bad(fmt::format("is an llm.c file, but was declared as '{}'", name_of(wanted)));
  }
  return facts;
}

result<token_store> token_store::open(std::span<const source> sources, bool add_eos) {
  std::vector<std::pair<file_facts, const source*>> found;
  std::uint64_t text_limit = 0;  // a document is not shorter in the file than its tokens are many
  for (const source& from : sources) {
    const auto paths = expand_paths(from.path);
    if (!paths) return paths.failure();
    for (const std::string& path : *paths) {
      auto file = identify(path, from.format);
      if (!file) return file.failure();
      if (file->format != data_format::llmc) text_limit += file->bytes + 1;
      found.emplace_back(std::move(*file), &from);
    }
  }

  token_store store;
  for (const auto& [file, from] : found) {
    if (file.format != data_format::llmc && !store.text_stream_) {
      store.text_stream_ = store.streams_.size();
      // At once, since growing would hold the text twice; pages that stay unused cost nothing.
      std::get<text_tokens>(store.streams_.emplace_back(text_tokens{})).reserve(text_limit);
    }
    const status added = file.format == data_format::llmc
                             ? store.add_shard(file)
                             : store.add_text(file, from->text_key, add_eos);
    if (!added) return added.failure();
  }
  if (store.streams_.size() > max_open_shards)
    for (auto& stream : store.streams_)
      if (auto* shard = std::get_if<llmc_shard>(&stream)) shard->release();
  return store;
}

status token_store::add_text(const file_facts& found, const std::string& key, bool add_eos) {
  auto& tokens = std::get<text_tokens>(streams_[*text_stream_]);
  const std::uint64_t before = tokens.size();
  text_tokenizer sink(tokens, add_eos);
  const auto read = found.format == data_format::jsonl ? read_json_lines(found.path, key, sink)
                                                       : read_text_file(found.path, sink);
  if (!read) return read.failure();
  file_facts& file = files_.emplace_back(found);
  file.documents = read->documents;
  file.tokens = tokens.size() - before;
  file.stream = *text_stream_;
  file.first_token = before;
  for (std::string& note : notes_about(found.path, *read)) notes_.push_back(std::move(note));
  return done{};
}

status token_store::add_shard(const file_facts& found) {
  auto shard = llmc_shard::open(found.path);
  if (!shard) return shard.failure();
  file_facts& file = files_.emplace_back(found);
  file.tokens = shard->tokens();
  file.token_bytes = shard->token_bytes();
  file.stream = streams_.size();
  // Past the limit the descriptors go back as shards come in, not only at the end.
  if (streams_.size() >= max_open_shards) shard->release();
  streams_.emplace_back(std::move(*shard));
  return done{};
}

std::uint64_t token_store::tokens_of(std::size_t stream) const {
  const auto& s = streams_[stream];
  if (const auto* text = std::get_if<text_tokens>(&s)) return text->size();
  return std::get<llmc_shard>(s).tokens();
}

std::uint64_t token_store::tokens() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < streams_.size(); ++i) sum += tokens_of(i);
  return sum;
}

status token_store::read(std::size_t stream, std::uint64_t first,
                         std::span<std::uint32_t> out) const {
  const auto& s = streams_[stream];
  if (const auto* shard = std::get_if<llmc_shard>(&s)) return shard->read(first, out);
  const auto& text = std::get<text_tokens>(s);
  ensure(first + out.size() <= text.size(), "tokens behind the end of a stream were asked for");
  std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
  return done{};
}

status token_store::check_ids(std::uint64_t vocabulary, std::uint64_t limit_bytes) const {
  std::vector<std::uint32_t> piece(scan_tokens);
  std::uint64_t scanned_bytes = 0;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const auto* shard = std::get_if<llmc_shard>(&streams_[i]);
    if (shard == nullptr) continue;
    if (shard->token_bytes() == 2 && vocabulary >= 65536) continue;
    for (std::uint64_t first = 0; first < shard->tokens(); first += scan_tokens) {
      const std::uint64_t n = std::min<std::uint64_t>(scan_tokens, shard->tokens() - first);
      scanned_bytes += n * shard->token_bytes();
      if (scanned_bytes > limit_bytes) return done{};
      const auto part = std::span(piece).first(n);
      if (auto got = shard->read(first, part); !got) return got;
      if (auto good = check_ids(i, first, part, vocabulary); !good) return good;
    }
  }
  return done{};
}

status token_store::check_ids(std::size_t stream, std::uint64_t first,
                              std::span<const std::uint32_t> tokens,
                              std::uint64_t vocabulary) const {
  const auto* shard = std::get_if<llmc_shard>(&streams_[stream]);
  if (shard == nullptr) return done{};
  std::uint32_t largest = 0;  // a loop without exits, so that it is vectorized
  for (std::uint32_t t : tokens) largest = std::max(largest, t);
  if (largest < vocabulary) return done{};
  const auto at =
      std::find_if(tokens.begin(), tokens.end(), [&](auto t) { return t >= vocabulary; });
  const std::uint64_t position = first + static_cast<std::uint64_t>(at - tokens.begin());
  return error{
      exit_code::bad_data,
      fmt::format("data file {}: token {} (counted from 0) is {}, but the vocabulary has {} "
                  "entries, so ids end at {}; the file was made for another tokenizer, or "
                  "model.vocab_size is wrong",
                  shard->path(), position, *at, vocabulary, vocabulary - 1)};
}

}  // namespace troupe::model::data
