// What a configuration means as a whole: values that follow from others are filled in, and what no
// single row can know is checked. Pure functions; nothing here rounds or clips what a person wrote,
// except that a micro-batch larger than the batch is the whole batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "config/settings.hpp"

namespace troupe::config {

struct problem {
  std::string key;  // the key to change
  std::string message;
};

// Required keys and each row's own bounds.
std::vector<problem> row_problems(const settings& s);

// Fills in what is 0, unset or "auto" where it follows from other keys. Idempotent.
settings derive(settings s);

// Checks across keys, for settings whose rows are fine and that are derived.
std::vector<problem> cross_problems(const settings& derived);

// The three in a row; the error lists all problems, one a line.
result<settings> resolve(const settings& s);

// The largest divisor of `batch` that is at most 16: the default of parallelism.virtual_ranks.
std::int64_t default_virtual_ranks(std::int64_t batch);

// Does this source need the tokenizer, or does it hold tokens already?
bool reads_text(const settings::source& source);

}  // namespace troupe::config
