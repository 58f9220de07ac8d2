#include "actors/sim/campaign.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "actors/sim/invariants.hpp"
#include "actors/stopwatch.hpp"
#include "config/base/mixing.hpp"

namespace troupe::actors::sim {
namespace {

class draws {
 public:
  explicit draws(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  std::uint64_t next() { return next_mixed(state_); }
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(next() % (high - low + 1));
  }
  bool one_in(std::uint32_t n) { return next() % n == 0; }
  // In half of the worlds nothing, otherwise up to `most`.
  double sometimes(double most) {
    if (one_in(2)) return 0;
    return most * static_cast<double>(next() >> 11) * 0x1p-53;
  }
  std::chrono::nanoseconds sometimes(std::chrono::nanoseconds most) {
    return std::chrono::nanoseconds(
        static_cast<std::int64_t>(sometimes(static_cast<double>(most.count()))));
  }

 private:
  std::uint64_t state_;
};

void add(comm::network_counters& to, const comm::network_counters& more) {
  to.frames += more.frames;
  to.bulk_messages += more.bulk_messages;
  to.lost += more.lost;
  to.repeated += more.repeated;
  to.reordered += more.reordered;
  to.damaged += more.damaged;
}

}  // namespace

world_settings from_seed(std::uint64_t seed) {
  using namespace std::chrono_literals;
  draws draw(seed);
  world_settings s;
  s.seed = seed;
  s.members = draw.between(1, 9);
  s.backups = draw.between(0, 2);
  s.steps = 12;
  s.toy.layers = draw.between(2, 5);
  s.toy.blocks = draw.between(1, 3);
  s.toy.virtual_ranks = draw.between(1, 16);
  s.toy.tied = draw.one_in(2);
  s.toy.seed = draw.next();
  s.validation_freq = draw.one_in(3) ? draw.between(1, 5) : 0;
  s.members_per_host = draw.between(1, 2);
  // A quarter of all networks is as good as networks are.
  if (draw.one_in(4)) return s;
  s.network.jitter = draw.sometimes(2ms);
  s.network.bulk_jitter = draw.sometimes(1ms);
  if (draw.one_in(4))
    s.network.bulk_bytes_per_second = draw.between(1, 100) * std::uint64_t{100'000};
  s.network.lose = draw.sometimes(0.02);
  s.network.repeat = draw.sometimes(0.05);
  s.network.reorder = draw.sometimes(0.05);
  s.network.damage = draw.sometimes(0.01);
  if (draw.one_in(2)) s.resets = draw.between(1, 6);
  return s;
}

world_settings settings_of(const campaign_settings& campaign, std::uint64_t seed) {
  world_settings s = from_seed(seed);
  s.members = campaign.members > 0 ? campaign.members
                                   : 2 + static_cast<std::uint32_t>(mixed(seed, "members") % 7);
  // With faults there is something to lose: every block has a backup at least.
  if (campaign.faults > 0) s.backups = std::max(1u, s.backups);
  s.steps = campaign.steps;
  // In most worlds all is over before somebody who is silent is missed; in these it is not.
  if (campaign.faults > 0 && mixed(seed, "slowness") % 4 == 0) s.slowness = 40;
  if (campaign.backups) s.backups = *campaign.backups;
  s.resets_within = std::chrono::milliseconds(4) * campaign.steps;
  constexpr std::uint32_t narrow = 16;
  if (s.members > narrow) {
    // What a change costs is measured where nothing else is wrong.
    s.measure = campaign.faults > 0;
    if (s.measure) {
      s.network = {};
      s.resets = 0;
    }
    s.slowness = 1;
    s.toy.virtual_ranks = s.members;
    s.toy.layers = 4;
    s.toy.blocks = narrow;
  }
  return s;
}

std::vector<fault> faults_of(const campaign_settings& campaign, std::uint64_t seed) {
  return faults_from_seed(seed, campaign.faults, campaign.steps);
}

seed_outcome run_seed(const world_settings& settings, const world_parts& parts,
                      const std::vector<fault>& faults) {
  const double begun = thread_cpu_seconds();
  seed_outcome outcome;
  outcome.seed = settings.seed;
  invariants checked(settings.toy, settings.steps);
  world w(settings, checked, parts);
  checked.watch([&w](member_id id) -> const toy_computation& { return w.device(id.value); });
  checked.watch_lives([&w](member_id id) { return w.life(id.value); });
  liveness lively(w, checked);
  fault_driver driver(w, faults, &lively);
  if (faults.empty()) {
    w.run();
  } else {
    change_cost cost(w);
    driver.run(std::chrono::minutes(5), [&] {
      if (settings.measure) cost.look();
    });
    outcome.changes = cost.changes();
  }
  const std::string trouble = w.trouble();
  outcome.faults = driver.struck();
  outcome.refused = driver.refused();
  outcome.story = driver.told();
  outcome.plans = static_cast<std::uint32_t>(w.store().plans.size());
  if (trouble.empty()) {
    checked.check_end(w.store());
    lively.check_end();
  }
  if (const auto& found = checked.first() ? checked.first() : lively.first()) {
    outcome.invariant = found->invariant;
    outcome.what = found->text();
  } else if (!trouble.empty()) {
    outcome.invariant = "end";
    outcome.what = trouble;
  }
  outcome.fingerprint = w.fingerprint();
  outcome.turns = w.turns();
  outcome.checks = checked.checks() + lively.checks();
  outcome.network = w.network().counters();
  outcome.virtual_seconds = std::chrono::duration<double>(w.now()).count();
  outcome.cpu_seconds = thread_cpu_seconds() - begun;
  return outcome;
}

campaign_outcome run_campaign(const campaign_settings& campaign,
                              const std::function<void(const seed_outcome&)>& failed) {
  constexpr std::uint64_t one_twice_in = 20;
  const stopwatch watch;
  campaign_outcome all;
  std::mutex mutex;
  std::atomic<std::uint64_t> next = campaign.first_seed;
  const auto work = [&] {
    for (;;) {
      const std::uint64_t seed = next.fetch_add(1);
      if (seed > campaign.last_seed) return;
      const world_settings settings = settings_of(campaign, seed);
      const std::vector<fault> faults = faults_of(campaign, seed);
      seed_outcome one = run_seed(settings, usual_parts(), faults);
      const bool again = seed % one_twice_in == 0;
      if (again) {
        const seed_outcome second = run_seed(settings, usual_parts(), faults);
        one.cpu_seconds += second.cpu_seconds;
        if (second.fingerprint != one.fingerprint && one.invariant.empty()) {
          one.invariant = "repeatable";
          one.what = fmt::format("two runs of one seed differ: fingerprints {:016x} and {:016x}",
                                 one.fingerprint, second.fingerprint);
        }
      }
      const std::lock_guard lock(mutex);
      ++all.seeds;
      all.twice += again ? 1 : 0;
      all.turns += one.turns;
      all.checks += one.checks;
      all.virtual_seconds += one.virtual_seconds;
      all.cpu_seconds += one.cpu_seconds;
      all.faults += one.faults;
      all.refused += one.refused;
      all.plans += one.plans;
      add(all.network, one.network);
      all.changes.insert(all.changes.end(), one.changes.begin(), one.changes.end());
      if (one.invariant.empty()) continue;
      if (failed) failed(one);
      all.failures.push_back(std::move(one));
    }
  };
  const auto wanted = static_cast<std::uint64_t>(std::max(1u, campaign.threads));
  const std::uint64_t seeds = campaign.last_seed - campaign.first_seed + 1;
  std::vector<std::jthread> threads;
  for (std::uint64_t i = 1; i < std::min(wanted, seeds); ++i) threads.emplace_back(work);
  work();
  threads.clear();
  std::ranges::sort(all.failures, {}, &seed_outcome::seed);
  all.wall_seconds = watch.seconds();
  return all;
}

}  // namespace troupe::actors::sim
