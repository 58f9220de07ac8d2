// Shapes of well-known models, compiled in from config/presets/*.toml so that the program needs no
// files of its own.
#pragma once

#include <span>
#include <string_view>

namespace troupe::config {

struct preset {
  std::string_view name, toml;
};
std::span<const preset> presets();

}  // namespace troupe::config
