#include "actors/world_counters.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::actors {

loss_kind loss_kind_of(std::string_view how) {
  const auto says = [how](std::string_view word) {
    return how.find(word) != std::string_view::npos;
  };
  if (says("killed by signal") || says("exited") || says("a new process")) return loss_kind::exit;
  if (says("stall") || says("no progress")) return loss_kind::stall;
  if (says("corrupt") || says("hash")) return loss_kind::corrupt;
  if (says("nothing was heard") || says("did not answer")) return loss_kind::heartbeat;
  return loss_kind::endpoint;
}

std::string_view name_of(loss_kind k) { return loss_kind_names[static_cast<std::size_t>(k)]; }

// A time that is no time (the clock of a virtual machine that was moved) counts as none.
void histogram::add(double seconds) {
  const double sound = seconds > 0 ? seconds : 0;
  const auto at = std::ranges::lower_bound(bounds, sound) - bounds.begin();
  ++counts_[static_cast<std::size_t>(at)];
  sum_ += sound;
}

std::uint64_t histogram::up_to(std::size_t i) const {
  const auto end = counts_.begin() + static_cast<std::ptrdiff_t>(i) + 1;
  return std::accumulate(counts_.begin(), end, std::uint64_t{0});
}

std::uint64_t histogram::count() const { return up_to(bounds.size()); }

}  // namespace troupe::actors
