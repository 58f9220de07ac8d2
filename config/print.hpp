// Everything that is printed from the option table: the effective configuration, the documentation
// of one option, and the reference page.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "config/settings.hpp"

namespace troupe::config {

// TOML that loads to the same settings; with `origins`, a comment says where a value comes from.
std::string show_toml(const settings& s, const std::map<std::string, std::string>& origins = {});

// The same as one JSON object, a table an object. Unset values are missing.
std::string show_json(const settings& s);

// What there is to know about a key, a table ("training") or another trainer's name for a key
// ("block_size"). Nothing if there is no such name.
std::optional<std::string> explain(std::string_view name);

// All keys, one line each.
std::string overview();

// docs/configuration.md.
std::string reference_page();

}  // namespace troupe::config
