// Token files of llm.c: a header of 256 little-endian 32-bit integers (magic, version, number of
// tokens, zeros), then the tokens, 16 or 32 bits each. The magic says the width, and the file's
// size has to agree with it, so a file of the other width, an odd byte or a lost end is always
// noticed before a token is used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "config/base/error.hpp"
#include "model/data/input_file.hpp"

namespace troupe::model::data {

inline constexpr std::size_t llmc_header_bytes = 1024;
inline constexpr std::uint64_t llmc_max_tokens =
    0x7FFFFFFF;  // the count is a signed 32-bit integer

struct llmc_kind {
  std::int32_t magic;
  std::int32_t version;
  std::size_t token_bytes;
};
inline constexpr llmc_kind llmc_16_bit{20240520, 1, 2};
inline constexpr llmc_kind llmc_32_bit{20240801, 7, 4};

// The narrowest kind that holds every id below `vocabulary`.
constexpr const llmc_kind& llmc_kind_for(std::uint64_t vocabulary) {
  return vocabulary <= 65536 ? llmc_16_bit : llmc_32_bit;
}

std::array<std::byte, llmc_header_bytes> llmc_header(const llmc_kind& kind, std::uint64_t tokens);

bool has_llmc_magic(std::span<const std::byte> head);

class llmc_shard {
 public:
  static result<llmc_shard> open(const std::string& path);

  const std::string& path() const { return path_; }
  std::uint64_t tokens() const { return tokens_; }
  std::size_t token_bytes() const { return token_bytes_; }
  std::uint64_t file_bytes() const { return llmc_header_bytes + tokens_ * token_bytes_; }

  // out = tokens first ... first + out.size() - 1. Safe to call from several threads.
  status read(std::uint64_t first, std::span<std::uint32_t> out) const;

  // Gives the descriptor back; each read then opens the file anew. For corpora of more shards than
  // a process may have files open.
  void release() { file_.reset(); }

 private:
  llmc_shard(std::string path, std::uint64_t tokens, std::size_t token_bytes);
  std::string path_;
  std::uint64_t tokens_ = 0;
  std::size_t token_bytes_ = 2;
  std::shared_ptr<const input_file> file_;
};

}  // namespace troupe::model::data
