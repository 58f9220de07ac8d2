// Names that people may write although no row of the option table has them, and what to tell them:
// ours that have no code in this version yet, those that will not come, and what other trainers
// call the same thing. A person who writes `block_size` should be told `training.seq_len`, not
// "unknown key".
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe::config {

// Dotted names of ours that are refused: "not in this version".
std::span<const std::string_view> absent_names();

struct unsupported_name {
  std::string_view name;
  std::string_view instead;  // how to get there
};
std::span<const unsupported_name> unsupported_names();

struct foreign_name {
  std::string_view name;  // lower case with '_'; with a table where the bare word would mislead
  std::string_view ours;  // a key, or an option of the command line
  std::string_view note = "";
};
std::span<const foreign_name> foreign_names();

// What to say about a key that is not in the option table. Never empty. `name` may carry the number
// of a list entry ("data.sources[1].weight").
std::string explain_unknown(std::string_view name);

// "data.sources[1].path" -> "data.sources[].path"; other names as they are.
std::string without_index(std::string_view name);

}  // namespace troupe::config
