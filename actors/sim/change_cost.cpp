#include "actors/sim/change_cost.hpp"

#include <algorithm>

namespace troupe::actors::sim {
namespace {

double median(std::vector<double> of) {
  if (of.empty()) return 0;
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::ranges::nth_element(of, middle);
  return *middle;
}

}  // namespace

std::vector<double> change_cost::now() const {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < world_.size(); ++i) seconds.push_back(world_.cpu_seconds(i));
  return seconds;
}

void change_cost::look() {
  if (world_.lines().size() == lines_ || world_.store().plans.empty()) return;
  lines_ = world_.lines().size();
  const std::vector<double> present = now();
  std::vector<double> spent;
  for (std::size_t i = 0; i < present.size(); ++i) {
    spent.push_back(present[i] - (i < at_line_.size() ? at_line_[i] : 0));
  }
  if (world_.store().plans.size() > plans_) {
    const protocol::plan& plan = world_.store().plans.back();
    change_seconds one;
    one.plan = plan.number.value;
    one.maker = spent.at(plan.coordinator.value);
    std::vector<double> others;
    for (const protocol::plan_member& m : plan.members) {
      if (m.id != plan.coordinator) others.push_back(spent.at(m.id.value));
    }
    one.others_median = median(others);
    one.others_most = others.empty() ? 0 : std::ranges::max(others);
    one.step_median = step_median_;
    changes_.push_back(one);
    plans_ = world_.store().plans.size();
  } else {
    step_median_ = median(spent);
  }
  at_line_ = present;
}

}  // namespace troupe::actors::sim
