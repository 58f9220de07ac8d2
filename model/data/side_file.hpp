// The JSON file beside packed token files: what the token file itself cannot say. Version 1:
//
//   {"version": 1, "format": "llm.c", "tokenizer": "byte", "vocabulary_size": 257, "eod_token":
//   256,
//    "documents": 3, "tokens": 1234, "hash": "32 hex digits",
//    "shards": [{"name": "out.bin", "tokens": 1234, "hash": "32 hex digits"}]}
//
// Hashes are of tokens and not of bytes (token_hash below), so they can be compared across widths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/file.hpp"

namespace troupe::model::data {

struct side_file {
  struct shard {
    std::string name;  // without folder
    std::uint64_t tokens = 0;
    std::string hash;
    friend bool operator==(const shard&, const shard&) = default;
  };
  std::string tokenizer;
  std::uint64_t vocabulary_size = 0;
  std::optional<std::uint64_t> eod_token;  // none: documents do not end with a token
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;
  std::string hash;
  std::vector<shard> shards;
  friend bool operator==(const side_file&, const side_file&) = default;
};

std::string to_json(const side_file& side);
result<side_file> parse_side_file(const std::string& text, const std::string& path);

// "a/out.json" for "a/out.bin"; for a shard "a/out_000003.bin" that of the whole set.
std::string side_file_path(const std::string& token_file);

// The side file that lists this token file, if there is one.
result<std::optional<side_file>> find_side_file(file_system& files, const std::string& token_file);

}  // namespace troupe::model::data
