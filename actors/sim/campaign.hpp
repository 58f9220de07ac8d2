// Many simulated worlds, one for each seed: what is drawn from a seed, how a world is judged, and
// the sum of it all. Worlds run on several threads, each world on one. One seed in twenty runs
// twice, and both runs must be the same in every delivery: otherwise a failure could not be shown
// again by its seed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/sim/change_cost.hpp"
#include "actors/sim/faults.hpp"
#include "actors/sim/world.hpp"

namespace troupe::actors::sim {

// Members, shape and a network with faults that a run must survive; 1 to 9 members, 12 steps.
world_settings from_seed(std::uint64_t seed);

struct campaign_settings {
  std::uint64_t first_seed = 1, last_seed = 1;
  std::uint32_t members = 8;  // 0: two to eight, drawn by each seed
  std::uint64_t steps = 50;
  std::optional<std::uint32_t> backups;  // nothing: drawn
  std::uint32_t faults = 0;              // at most so many strike in a world; 0: none
  unsigned threads = 2;
};
// Of one seed of a campaign: from_seed() with what the campaign fixes. A wide world gets a model
// with more to share out.
world_settings settings_of(const campaign_settings& campaign, std::uint64_t seed);

struct seed_outcome {
  std::uint64_t seed = 0;
  std::string invariant;  // that was violated, or "end": it did not end well; empty: all is well
  std::string what;       // in words
  std::uint64_t fingerprint = 0, turns = 0, checks = 0;
  comm::network_counters network;
  double virtual_seconds = 0, cpu_seconds = 0;
  std::uint32_t faults = 0, refused = 0, plans = 0;
  std::vector<std::string> story;       // of the faults, in order
  std::vector<change_seconds> changes;  // of a wide world with faults
};
seed_outcome run_seed(const world_settings& settings, const world_parts& parts = usual_parts(),
                      const std::vector<fault>& faults = {});
// The faults that strike in the world of a seed.
std::vector<fault> faults_of(const campaign_settings& campaign, std::uint64_t seed);

struct campaign_outcome {
  std::uint64_t seeds = 0, twice = 0, turns = 0, checks = 0;
  comm::network_counters network;
  double virtual_seconds = 0, cpu_seconds = 0, wall_seconds = 0;
  std::uint64_t faults = 0, refused = 0, plans = 0;
  std::vector<change_seconds> changes;  // of wide worlds with faults
  std::vector<seed_outcome> failures;   // by seed
};
// `failed` is told of each failure as it is found, by one thread at a time.
campaign_outcome run_campaign(const campaign_settings& campaign,
                              const std::function<void(const seed_outcome&)>& failed);

}  // namespace troupe::actors::sim
