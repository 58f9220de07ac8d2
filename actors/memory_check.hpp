// Does a training run fit into this machine's memory? Asked before anything is allocated, because
// the kernel's answer comes late and names nobody.
#pragma once

#include <cstdint>

#include "actors/computation.hpp"
#include "actors/trainer.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {

// What a member allocates on its device, by what it is for.
struct member_bytes {
  std::uint64_t parameters = 0;   // the whole model where it computes, else what it holds
  std::uint64_t optimizer = 0;    // moments of held blocks
  std::uint64_t gradients = 0;    // trees, arriving nodes, sums
  std::uint64_t activations = 0;  // forward and backward; validation apart
  std::uint64_t total() const { return parameters + optimizer + gradients + activations; }
  friend bool operator==(const member_bytes&, const member_bytes&) = default;
};

// Exact but for arriving nodes, whose number depends on how the others are cut: counted as if one
// member computed all ranks before the share and one all behind it.
member_bytes bytes_of(const model::description& d, const trainer_settings& settings,
                      const member_share& share);

// Bytes of a worker that is alone.
std::uint64_t memory_needed(const model::description& d, const trainer_settings& settings);

// Memory that the system says it can give without swapping, 0 if it does not say.
std::uint64_t memory_available();

// Exit code 78 if it cannot fit, naming both numbers and what to change.
status check_memory(const model::description& d, const trainer_settings& settings,
                    std::uint64_t available);

}  // namespace troupe::actors
