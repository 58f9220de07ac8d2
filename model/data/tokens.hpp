// Every token of a data set, read-only, as one or more streams (windows.hpp says why streams).
//
// Text and JSON lines are tokenized when the store opens and kept in memory, two bytes a token;
// token files stay on disk and are read window by window. Sources come in the order of the config,
// the files of one source sorted by name.
//
// Byte tokenizer: token = byte value; with `add_eos` every document ends with the token 256, which
// makes a vocabulary of 257 entries.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "config/base/error.hpp"
#include "model/data/llmc.hpp"

namespace troupe::model::data {

inline constexpr std::uint32_t byte_end_of_text = 256;
constexpr std::uint64_t byte_vocabulary(bool add_eos) { return add_eos ? 257 : 256; }

// How a file is read. `automatic`: llm.c by its magic, JSON lines by the ending .jsonl or .ndjson,
// everything else is text; endings of formats that cannot be read are refused by name.
enum class data_format : std::uint8_t { automatic, text, jsonl, llmc };
const char* name_of(data_format format);

struct source {
  std::string path;  // or a pattern
  data_format format = data_format::automatic;
  std::string text_key = "text";  // JSON lines
};

struct file_facts {
  std::string path;
  data_format format = data_format::text;  // never `automatic`
  std::uint64_t bytes = 0;
  std::uint64_t tokens = 0;
  std::size_t token_bytes = 0;             // token files: 2 or 4
  std::optional<std::uint64_t> documents;  // a token file does not say
  std::size_t stream = 0;                  // that the tokens went to ...
  std::uint64_t first_token = 0;           // ... and where there
};

// Path, size and format of a file; the format is recognised, or checked as far as its beginning
// tells.
result<file_facts> identify(const std::string& path, data_format wanted);

class token_store {
 public:
  static result<token_store> open(std::span<const source> sources, bool add_eos);

  std::size_t streams() const { return streams_.size(); }
  std::uint64_t tokens_of(std::size_t stream) const;
  std::uint64_t tokens() const;
  const std::vector<file_facts>& files() const { return files_; }
  bool holds_text() const { return text_stream_.has_value(); }

  // Things that a person may want to know once: marks dropped, line ends kept.
  const std::vector<std::string>& notes() const { return notes_; }

  // out = tokens first ... of the stream. Safe to call from several threads.
  status read(std::size_t stream, std::uint64_t first, std::span<std::uint32_t> out) const;

  // The first token that is not below `vocabulary`, looked for in the whole store as long as that
  // is at most `limit_bytes` of token files; text cannot hold one.
  status check_ids(std::uint64_t vocabulary,
                   std::uint64_t limit_bytes = std::numeric_limits<std::uint64_t>::max()) const;

  // The same for tokens that were just read, `tokens` being first ... of the stream.
  status check_ids(std::size_t stream, std::uint64_t first, std::span<const std::uint32_t> tokens,
                   std::uint64_t vocabulary) const;

 private:
  using text_tokens = std::vector<std::uint16_t>;

  status add_text(const file_facts& found, const std::string& key, bool add_eos);
  status add_shard(const file_facts& found);

  std::vector<std::variant<text_tokens, llmc_shard>> streams_;
  std::optional<std::size_t> text_stream_;  // there is one at most
  std::vector<file_facts> files_;
  std::vector<std::string> notes_;
};

}  // namespace troupe::model::data
