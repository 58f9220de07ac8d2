// Which kinds of faults a [random] table draws, and how often each: the weights written there, or a
// mix. "even" is every kind that the mode can do. "field" follows the causes of interruptions that
// a large operator published for three months of jobs (ByteRobust, arXiv 2509.16293), grouped by
// what a run sees of them: most causes end a process.
#pragma once

#include <cstdint>
#include <map>

#include "actors/chaos/scenario.hpp"

namespace troupe::actors::chaos {

std::map<fault_kind, double> weights_of(const random_faults& random, run_mode mode,
                                        std::uint64_t seed);

// The kind that a number of [0, 1) falls on.
fault_kind drawn(const std::map<fault_kind, double>& weights, double at);

}  // namespace troupe::actors::chaos
