// `data pack`: text and JSON lines into llm.c token files and a side file, in one pass and bounded
// memory. The packed files hold the very tokens that training on the text would see, so a run may
// change from one to the other as long as one shard holds all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/file.hpp"
#include "config/base/hash.hpp"
#include "model/data/shard_writer.hpp"
#include "model/data/tokens.hpp"

namespace troupe::model::data {

struct pack_options {
  std::vector<source> sources;
  std::string out;
  bool add_eos = true;
  std::uint64_t shard_tokens = default_shard_tokens;
  bool replace_existing = false;  // else files of that name are an error (73)
};

struct pack_report {
  std::vector<written_shard> shards;
  std::string side_file;
  std::uint64_t files = 0;
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;
  std::uint64_t vocabulary = 0;
  hash128 hash;
  std::vector<std::string> notes;
};

result<pack_report> pack(const pack_options& options, file_system& files);

}  // namespace troupe::model::data
