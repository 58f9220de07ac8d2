// The one table of options. Defaults, checks of type and bounds, `config show`, `config explain`
// and docs/configuration.md are all printed from these rows, so that they cannot disagree.
//
// A key stands here together with the code that obeys it; names that have no code yet are in
// known_names.hpp. Rows name themselves as a person would write them: "training.steps",
// "data.sources[].path".
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.hpp"
#include "config/value.hpp"

namespace troupe::config {

enum class kind : std::uint8_t {
  text,
  choice,   // text, one of `choices`
  integer,  // 64 bits
  number,   // a finite double
  boolean,
  table,   // [model.rope_scaling]; set(true) makes it there
  tables,  // [[data.sources]]; set(n) makes it n entries of defaults
};

// Who must agree on the value.
enum class scope : std::uint8_t {
  run,     // compared when a member joins
  member,  // each member's own affair
};

// Whether a change may change the bits of the run.
enum class bits : std::uint8_t {
  no,
  yes,      // compared on resume
  through,  // yes, but compared through what follows from it (see fingerprint.hpp)
};

struct bounds {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false;  // `least` itself is out
  bool below_most = false;   // `most` itself is out
};

struct option {
  std::string_view name;
  config::kind kind;
  std::string_view standard;  // the default as a person would write it; "" for none
  config::bounds bounds;
  std::string_view unit;
  std::string_view sentence;
  config::scope scope;
  config::bits bits;
  // `index` is the entry of [[data.sources]] and means nothing elsewhere.
  value (*get)(const settings&, std::size_t index);
  void (*set)(settings&, std::size_t index, const value&);
  std::span<const std::string_view> choices = {};
  std::span<const std::string_view> later = {};  // known choices that are not in this version
  bool required = false;

  std::string_view section() const { return name.substr(0, name.rfind('.')); }
  std::string_view key() const { return name.substr(name.rfind('.') + 1); }
};

// In the order of the documentation.
std::span<const option> options();
const option* find_option(std::string_view name);

// "job", "model", ... and the tables "model.rope_scaling" and "data.sources[]".
struct section {
  std::string_view name, sentence;
};
std::span<const section> sections();
const section* find_section(std::string_view name);

// TROUPE_TRAINING_STEPS for "training.steps".
std::string environment_name(std::string_view option_name);

settings default_settings();
void reset_sources(settings& s, std::size_t count);  // entries of defaults

// Every set value in table order; entries of a list of tables carry their number:
// {"data.sources[0].path", ...}.
struct setting {
  std::string key;
  const config::option* option;
  std::size_t index;
  config::value value;
};
std::vector<setting> list_settings(const settings& s);

std::string_view name_of(model_family f);
std::string_view name_of(decay_type d);
std::string_view name_of(source_format f);

}  // namespace troupe::config
