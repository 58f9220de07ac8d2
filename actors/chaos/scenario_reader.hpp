// A scenario from its TOML file. Whether the text says something at all is decided here, key by
// key; whether a mode can do it, and whether its parts fit together, by scenario_check.
#pragma once

#include <string>
#include <string_view>

#include "actors/chaos/scenario.hpp"
#include "config/base/error.hpp"
#include "config/base/file.hpp"

namespace troupe::actors::chaos {

// All problems of the file in one error (78), one a line.
result<scenario> read_scenario(std::string_view text, const std::string& file);
result<scenario> load_scenario(file_system& files, const std::string& path);

}  // namespace troupe::actors::chaos
