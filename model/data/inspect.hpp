// `data info`: what data files hold, from reading all of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/file.hpp"
#include "config/base/hash.hpp"
#include "model/data/side_file.hpp"
#include "model/data/tokens.hpp"

namespace troupe::model::data {

struct file_report {
  file_facts facts;
  std::uint32_t largest_id = 0;
  hash128 hash;                   // of the file's tokens, each as four little-endian bytes
  std::optional<side_file> side;  // token files: what the file beside it says
};

struct window_report {
  std::uint64_t seq_len = 0;
  std::uint64_t windows = 0;
  std::uint64_t unused_tokens = 0;
  std::optional<hash128> digest;  // none without a window
};

struct data_report {
  std::vector<file_report> files;
  std::uint64_t tokens = 0;
  hash128 hash;  // of all tokens in order
  std::optional<window_report> windows;
  std::vector<std::string> notes;
};

struct inspect_options {
  std::vector<source> sources;
  bool add_eos = true;
  std::uint64_t seq_len = 0;     // 0: say nothing about windows
  std::uint64_t vocabulary = 0;  // 0: any id is good
};

// Fails where training would, and where a side file contradicts its token file.
result<data_report> inspect(const inspect_options& options, file_system& files);

}  // namespace troupe::model::data
