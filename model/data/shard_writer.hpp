// Writes token files of llm.c. Everything goes to temporary files first; `finish` gives them their
// names when all are complete and durable, so a name never stands for half a file, and whoever
// gives up earlier (an error, or simply destroying the writer) leaves nothing behind.
//
// The width follows from the vocabulary, and an id that is not below it is refused: nothing is ever
// wrapped into 16 bits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/file.hpp"
#include "config/base/hash.hpp"
#include "model/data/llmc.hpp"

namespace troupe::model::data {

inline constexpr std::uint64_t default_shard_tokens = 100'000'000;  // llm.c's custom

struct shard_options {
  std::string out;  // one shard: this name; more: "out_000000.bin", "out_000001.bin", ...
  std::uint64_t vocabulary = 0;
  std::uint64_t shard_tokens = default_shard_tokens;  // at most llmc_max_tokens
};

struct written_shard {
  std::string path;
  std::uint64_t tokens = 0;
  hash128 hash;  // of the tokens, as in token_hash()
};

class shard_writer {
 public:
  shard_writer(file_system& files, shard_options options);
  ~shard_writer();
  shard_writer(const shard_writer&) = delete;
  shard_writer& operator=(const shard_writer&) = delete;

  status add(std::span<const std::uint32_t> tokens);
  result<std::vector<written_shard>> finish();  // once; at least one token must have come

 private:
  status begin_shard();
  status flush();
  status end_shard();
  std::string temporary_name(std::size_t shard) const;

  file_system& files_;
  shard_options options_;
  const llmc_kind& kind_;
  std::unique_ptr<file> file_;  // of the shard being written, else none
  std::vector<std::byte> buffer_;
  std::uint64_t written_bytes_ = 0;
  hasher hash_;
  std::vector<written_shard> shards_;
};

// "a/b" for "a/b.bin": what the names of shards and of the side file begin with.
std::string stem_of(const std::string& out);
std::string shard_name(const std::string& out, std::size_t shard);

}  // namespace troupe::model::data
