// What a change of plans costs the members of a simulated world in CPU time: from the last step
// recorded before a plan to the first one after it. One step's work is in it.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/sim/world.hpp"

namespace troupe::actors::sim {

struct change_seconds {
  std::uint32_t plan = 0;
  double maker = 0;  // the member that made the plan
  double others_median = 0, others_most = 0;
  double step_median = 0;  // of a member, in the step before
};

class change_cost {
 public:
  explicit change_cost(const world& w) : world_(w) {}
  // After every event.
  void look();
  const std::vector<change_seconds>& changes() const { return changes_; }

 private:
  std::vector<double> now() const;
  const world& world_;
  std::size_t lines_ = 0, plans_ = 1;
  std::vector<double> at_line_;
  double step_median_ = 0;
  std::vector<change_seconds> changes_;
};

}  // namespace troupe::actors::sim
