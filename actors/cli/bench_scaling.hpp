// The figures of `troupe bench scaling`, from the times of steps: what two workers that train
// together reach of what two that train alone reach side by side, and what the backups cost.
//
// Shared machines drift by more than what is measured. So a ratio is taken within one round, whose
// measurements follow each other at once, and the median over the rounds is told with its spread.
// Not chosen: the best of all rounds, which compares the quietest moments of different minutes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::actors::cli {

// Seconds of each step that counts.
struct scaling_round {
  std::vector<double> together;     // one world of two workers
  std::vector<double> unprotected;  // the same without backups
  std::vector<double> alone[2];     // a run of one worker with half of the batch, and its neighbour
};

struct spread {
  double median = 0, lowest = 0, highest = 0;
};
// Requires at least one value.
spread spread_of(std::vector<double> values);

struct scaling_figures {
  spread tokens_together, tokens_unprotected, tokens_alone;  // a second; alone: both added
  spread efficiency, efficiency_unprotected;                 // together over alone
  spread protection_cost;  // share of the unprotected speed that backups take
};
// `tokens`: of a step of the whole batch. Requires at least one round, with times in each list.
scaling_figures scaling_of(std::span<const scaling_round> rounds, double tokens);

}  // namespace troupe::actors::cli
