// The places of the step protocol at which a fault may strike, and the events that it may answer.
// A point belongs to a member and a step ("voted"), some of them to the k-th time within it
// ("commit-sent:1"); an event is a line of events.jsonl with '-' for '_'.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors::chaos {

struct named_point {
  std::string name;
  std::optional<std::uint32_t> k;  // counts from 1; unset: each time
  friend bool operator==(const named_point&, const named_point&) = default;
};

const std::vector<std::string>& point_names();
const std::vector<std::string>& event_names();
bool counts(std::string_view point);  // may it carry a :k?
// Does a member come by it in this version? There it looks for orders, too.
bool is_reached(std::string_view point);

// "commit-sent:1". Nothing: there is no such point.
std::optional<named_point> parse_point(std::string_view text);
std::string to_text(const named_point& point);

// What a watcher of records and processes sees: a step's begin and its commit.
bool seen_from_outside(std::string_view point);

// The name in `on` for a line of events.jsonl: "generation" is a published plan.
std::string event_of_record(std::string_view record);

}  // namespace troupe::actors::chaos
