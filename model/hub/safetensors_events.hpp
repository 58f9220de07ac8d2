// The grammar of a safetensors header, as events of a JSON reader: an object of tensors, each with
// exactly dtype, shape and data_offsets, and perhaps "__metadata__" with texts only. Any other
// event ends the reading at once, so that neither depth nor size of strange JSON costs memory. What
// the numbers mean is checked by safetensors.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/error.hpp"

namespace troupe::model {

struct raw_entry {
  std::string name, type;
  std::vector<std::uint64_t> shape;
  std::array<std::uint64_t, 2> offsets{};
};

struct raw_header {
  std::vector<raw_entry> tensors;  // as they stand in the text
  std::map<std::string, std::string> metadata;
};

result<raw_header> read_header_events(std::string_view text);

}  // namespace troupe::model
