// A snapshot as the text that Prometheus reads (exposition format 0.0.4). A pure function.
//
// The number of series depends on the number of slots and on nothing that happens: labels are fixed
// words and slot numbers, never a step, path, process, port, time or error. A lost member's slot
// shows `troupe_member_up` 0 and nothing else until a successor takes it or a plan drops it. Gauges
// that have no value yet are left out; counters that are known beforehand start at 0.
//
// Not chosen: a metrics library with a registry. Everything to be told is in one value already, and
// a registry would be a second place that remembers series of members long gone.
#pragma once

#include <string>

#include "actors/machine.hpp"
#include "actors/world_status.hpp"

namespace troupe::actors {

inline constexpr std::string_view metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

std::string metrics_text(const world_status& s, const process_facts& process);

}  // namespace troupe::actors
