// From a path or pattern to files. The list is sorted by the bytes of the names, so neither the
// order in a folder nor the locale can change what a run trains on.
#pragma once

#include <string>
#include <vector>

#include "config/base/error.hpp"

namespace troupe::model::data {

// A path that exists is taken literally, even if it holds '*', '?' or '['; otherwise these are
// wildcards within one folder level. No match is bad data. '**' is refused: it would look one level
// deep only and so quietly leave files out.
result<std::vector<std::string>> expand_paths(const std::string& pattern);

}  // namespace troupe::model::data
