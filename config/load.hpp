// From what people write to `settings`. Precedence, lowest first: defaults, preset (model.flavor),
// file, environment (TROUPE_SECTION_KEY), command line.
//
// Nothing is dropped, guessed or rounded: an unknown, misplaced, duplicate or mistyped key is an
// error that names file, line, key and the nearest known key. All problems of an input are reported
// together, one a line, in the order of the file, because people repair a file faster than they
// restart a job. The only home of toml++.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "config/settings.hpp"

namespace troupe::config {

struct sources_of_settings {
  std::string file;                 // path of a TOML file; "" for none
  std::optional<std::string> text;  // what stands in `file`, if it is not to be read from disk
  // "TROUPE_TRAINING_STEPS=100"; variables without the prefix TROUPE_ are ignored.
  std::vector<std::string> environment;
  // "training.steps=100"; a boolean key alone means true. The last of equals counts.
  std::vector<std::string> overrides;
};

struct loaded {
  config::settings settings;
  // Where each value comes from, by key ("data.sources[0].path"): "run.toml:12", "preset 124M",
  // "TROUPE_TRAINING_STEPS", "command line". What is missing is a default or follows from others.
  std::map<std::string, std::string> origins;
};

// What everybody needs: everything filled in and checked (see check.hpp). Exit code 78 on failure.
result<loaded> load(const sources_of_settings& from);

// As written: defaults filled in, nothing derived, no check across keys.
result<loaded> load_as_written(const sources_of_settings& from);

}  // namespace troupe::config
