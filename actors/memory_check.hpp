// Does a training run fit into this machine's memory? Asked before anything is allocated, because
// the kernel's answer comes late and names nobody.
#pragma once

#include <cstdint>

#include "actors/trainer.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {

// Bytes of parameters, moments, gradient trees and activations of a worker; a lower bound.
std::uint64_t memory_needed(const model::description& d, const trainer_settings& settings);

// Memory that the system says it can give without swapping, 0 if it does not say.
std::uint64_t memory_available();

// Exit code 78 if it cannot fit, naming both numbers and what to change.
status check_memory(const model::description& d, const trainer_settings& settings,
                    std::uint64_t available);

}  // namespace troupe::actors
