#include "actors/protocol_points.hpp"

#include <array>

namespace troupe::actors {
namespace {

constexpr std::array<std::string_view, protocol_point_count> names = {
    // one step
    "step-begin", "microbatch-done", "partial-sent", "reduced", "grad-forwarded", "grad-held",
    "acked", "voted", "votes-complete", "decided", "commit-sent", "commit-seen", "applying",
    "applied", "params-sent", "params-complete", "stable",
    // from a plan to the next
    "suspected", "collect-sent", "promised", "collected", "plan-written", "published",
    "verdict-sent", "adopted", "resumed", "copy-begin", "copy-half", "copy-verified",
    "redundancy-restored",
    // who comes and goes
    "notice-received", "drained", "join-hello", "join-admitted"};
static_assert(static_cast<std::size_t>(protocol_point::join_admitted) + 1 == names.size());

}  // namespace

std::string_view name_of(protocol_point at) { return names[static_cast<std::size_t>(at)]; }

std::optional<protocol_point> protocol_point_named(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<protocol_point>(i);
  }
  return std::nullopt;
}

}  // namespace troupe::actors
