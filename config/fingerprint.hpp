// What must be equal for a run to go on with the same bits: the printed values of all keys that
// feed them, taken from derived settings, so that `0 = from the tokenizer` and its number are the
// same.
//
// Some keys feed bits only through others, which stand here in their place: model.flavor through
// the shapes; training.steps through the length of the rate's curve; the data's files through a
// digest of their tokens, which the data layer compares. A constant rate has no curve: its length,
// fall and floor are left out, which is why such a run may grow.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/base/hash.hpp"
#include "config/settings.hpp"

namespace troupe::config {

struct printed_setting {
  std::string key, value;
  friend bool operator==(const printed_setting&, const printed_setting&) = default;
};
using fingerprint = std::vector<printed_setting>;

fingerprint fingerprint_of(const settings& derived);
hash128 hash_of(const fingerprint& f);

struct difference {
  std::string key, before, now;  // "unset" where a side has no value
  std::string hint;              // what to set to go on as before
};
std::vector<difference> differences(const fingerprint& before, const fingerprint& now);

// "training.seed: 1 before, 2 now", one a line.
std::string describe(const std::vector<difference>& list);

}  // namespace troupe::config
