// The figures that a scenario may set limits on and that a report carries. Their exact definitions
// stand in docs/chaos.md; here is what a limit means: a duration's single value is the most that is
// allowed, a count's single value is exact, two values are a range, and a ratio needs two.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors::chaos {

enum class unit : std::uint8_t { seconds, count, ratio, boolean };

struct metric_row {
  std::string_view name;
  unit in;
  bool from_records;  // can be told from the records of a run and a watcher outside of it
};

std::span<const metric_row> metric_table();
const metric_row* find_metric(std::string_view name);  // nullptr: there is none

// "200 s", "3", "0.95", "true".
std::string in_words(unit in, double value);

}  // namespace troupe::actors::chaos
