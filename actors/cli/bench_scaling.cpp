#include "actors/cli/bench_scaling.hpp"

#include <algorithm>

#include "config/base/error.hpp"

namespace troupe::actors::cli {

spread spread_of(std::vector<double> values) {
  ensure(!values.empty(), "a spread of no values was asked for");
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

scaling_figures scaling_of(std::span<const scaling_round> rounds, double tokens) {
  std::vector<double> together, unprotected, alone, efficiency, bare, cost;
  for (const scaling_round& r : rounds) {
    const double t = tokens / spread_of(r.together).median;
    const double u = tokens / spread_of(r.unprotected).median;
    double a = 0;
    for (const std::vector<double>& one : r.alone) a += tokens / 2 / spread_of(one).median;
    together.push_back(t);
    unprotected.push_back(u);
    alone.push_back(a);
    efficiency.push_back(t / a);
    bare.push_back(u / a);
    cost.push_back(1 - t / u);
  }
  return {.tokens_together = spread_of(together),
          .tokens_unprotected = spread_of(unprotected),
          .tokens_alone = spread_of(alone),
          .efficiency = spread_of(efficiency),
          .efficiency_unprotected = spread_of(bare),
          .protection_cost = spread_of(cost)};
}

}  // namespace troupe::actors::cli
