#include "actors/cli/simulate_scenario.hpp"

#include <fmt/format.h>

#include <ostream>

#include "actors/chaos/scenario_check.hpp"
#include "actors/chaos/scenario_reader.hpp"
#include "actors/chaos/simulated_trial.hpp"
#include "actors/cli/chaos_verdict.hpp"
#include "actors/cli/command_line.hpp"
#include "config/base/file.hpp"
#include "config/load.hpp"

namespace troupe::actors::cli {
namespace {

using chaos::scenario;

// What a simulated world has of the config: its size, its copies, its patience. The model is the
// simulation's own.
result<chaos::simulated_settings> settings_of(const scenario& s) {
  const bool absolute = s.config.starts_with('/');
  std::vector<std::string> sets;
  for (const auto& [key, value] : s.sets) sets.push_back(key + "=" + value);
  result<config::loaded> loaded =
      config::load({.file = absolute ? s.config : join_path(parent_path(s.file), s.config),
                    .text = {},
                    .environment = environment(),
                    .overrides = sets});
  if (!loaded) return loaded.failure();
  const config::settings& c = loaded->settings;
  chaos::simulated_settings settings;
  settings.steps = static_cast<std::uint64_t>(c.training.steps);
  settings.backups = static_cast<std::uint32_t>(c.fault_tolerance.backups);
  if (c.parallelism.virtual_ranks > 0) {
    settings.virtual_ranks = static_cast<std::uint32_t>(c.parallelism.virtual_ranks);
  }
  settings.heartbeat = std::chrono::milliseconds(c.fault_tolerance.heartbeat_ms);
  settings.suspect = std::chrono::milliseconds(c.fault_tolerance.suspect_ms);
  settings.evict = std::chrono::milliseconds(c.fault_tolerance.evict_ms);
  return settings;
}

}  // namespace

int simulate_scenario(const std::string& path,
                      const std::optional<std::pair<std::uint64_t, std::uint64_t>>& seeds,
                      bool json, std::ostream& out, std::ostream& err) {
  const result<scenario> s = chaos::load_scenario(real_file_system(), path);
  if (!s) return fail(s.failure(), err);
  constexpr auto mode = chaos::run_mode::sim;
  if (status sound = chaos::check_scenario(*s, mode); !sound) return fail(sound.failure(), err);
  result<chaos::simulated_settings> settings = settings_of(*s);
  if (!settings) return fail(settings.failure(), err);
  scenario calm = *s;
  calm.faults.clear();
  calm.random.reset();
  calm.quiet.reset();
  const auto [first, last] = seeds.value_or(std::pair(s->seed, s->seed + s->repeat - 1));
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    std::optional<chaos::reference_facts> reference;
    if (s->reference == "auto") {
      reference = chaos::reference_of(chaos::run_in_simulation(calm, seed, *settings));
    }
    chaos::simulated_settings told = *settings;
    std::vector<std::string> story;
    told.say = [&story](const std::string& line) { story.push_back(line); };
    const chaos::run_facts run = chaos::run_in_simulation(*s, seed, told);
    const int code = tell_verdict({*s, mode, seed, run, reference, "", ""}, json, out, err);
    if (code == 0) continue;
    for (const std::string& line : story) err << "  " << line << '\n';
    return code;
  }
  return 0;
}

}  // namespace troupe::actors::cli
