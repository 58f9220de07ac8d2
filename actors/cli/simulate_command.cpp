// `troupe simulate`: worlds of simulated members, one for each seed, checked at every point of the
// protocol. docs/simulation.md says what is simulated.

#include <fmt/format.h>

#include <charconv>
#include <ostream>

#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/simulate_scenario.hpp"
#include "actors/sim/campaign.hpp"
#include "actors/text.hpp"
#include "config/base/json.hpp"

namespace troupe::actors::cli {
namespace {

using sim::campaign_outcome;
using sim::campaign_settings;
using sim::seed_outcome;

constexpr std::uint32_t most_members = 4096, most_backups = 8;
constexpr std::uint64_t most_steps = 1'000'000;

// "7" or "1..1000".
std::optional<std::pair<std::uint64_t, std::uint64_t>> seeds_from(std::string_view text) {
  const auto number = [](std::string_view word) -> std::optional<std::uint64_t> {
    std::uint64_t n = 0;
    const auto [end, trouble] = std::from_chars(word.data(), word.data() + word.size(), n);
    if (trouble != std::errc() || end != word.data() + word.size()) return std::nullopt;
    return n;
  };
  const std::size_t dots = text.find("..");
  const auto first = number(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : number(text.substr(dots + 2));
  if (!first || !last || *last < *first || *last == UINT64_MAX) return std::nullopt;
  return std::pair(*first, *last);
}

std::string again(const campaign_settings& c, std::uint64_t seed) {
  std::string line =
      fmt::format("troupe simulate --seeds {} --members {} --steps {}", seed, c.members, c.steps);
  if (c.faults > 0) line += fmt::format(" --faults {}", c.faults);
  if (c.backups) line += fmt::format(" --backups {}", *c.backups);
  return line;
}

// CPU time of members for the changes of plans in wide worlds.
std::string change_line(const std::vector<sim::change_seconds>& all) {
  double maker = 0, others = 0, others_most = 0, step = 0;
  for (const sim::change_seconds& one : all) {
    maker = std::max(maker, one.maker);
    others = std::max(others, one.others_median);
    others_most = std::max(others_most, one.others_most);
    step = std::max(step, one.step_median);
  }
  return fmt::format(
      "{}; CPU at most {:.0f} ms in the member that makes the plan, {:.1f} ms in the median of the "
      "others, {:.1f} ms in any of them; a step {:.1f} ms",
      all.size(), 1e3 * maker, 1e3 * others, 1e3 * others_most, 1e3 * step);
}

void print_text(const campaign_settings& c, const campaign_outcome& o, std::ostream& out) {
  const auto count = [](std::uint64_t n) { return fmt::format("{}", n); };
  out << table(
      {{"worlds", fmt::format("{} of {} members and {} steps, {} of them twice", o.seeds, c.members,
                              c.steps, o.twice)},
       {"faults on purpose",
        fmt::format("{} struck, {} of them joins as nobody may be struck; {} plans", o.faults,
                    o.refused, o.plans)},
       {"violations", count(o.failures.size())},
       {"checks", count(o.checks)},
       {"messages",
        fmt::format("{} control frames, {} bulk", o.network.frames, o.network.bulk_messages)},
       {"network", fmt::format("{} frames lost, {} repeated, {} late, {} damaged", o.network.lost,
                               o.network.repeated, o.network.reordered, o.network.damaged)},
       {"virtual time", fmt::format("{:.1f} s", o.virtual_seconds)},
       {"CPU time", fmt::format("{:.2f} s", o.cpu_seconds)},
       {"wall time", fmt::format("{:.2f} s", o.wall_seconds)}});
  if (!o.changes.empty()) out << table({{"changes of plans", change_line(o.changes)}});
}

void print_json(const campaign_settings& c, const campaign_outcome& o, std::ostream& out) {
  json_page page;
  page.u64("worlds", o.seeds)
      .u64("twice", o.twice)
      .u64("members", c.members)
      .u64("steps", c.steps)
      .u64("faults", o.faults)
      .u64("faults_refused", o.refused)
      .u64("plans", o.plans)
      .u64("checks", o.checks)
      .u64("control_frames", o.network.frames)
      .u64("bulk_messages", o.network.bulk_messages)
      .u64("frames_lost", o.network.lost)
      .u64("frames_repeated", o.network.repeated)
      .u64("frames_late", o.network.reordered)
      .u64("frames_damaged", o.network.damaged)
      .number("virtual_seconds", o.virtual_seconds)
      .number("cpu_seconds", o.cpu_seconds)
      .number("wall_seconds", o.wall_seconds)
      .begin_array("failures");
  for (const seed_outcome& f : o.failures) {
    page.begin_element()
        .u64("seed", f.seed)
        .text("invariant", f.invariant)
        .text("what", f.what)
        .text("again", again(c, f.seed))
        .end();
  }
  page.end();
  out << page.finish();
}

}  // namespace

int simulate_command(arguments args, std::ostream& out, std::ostream& err) {
  command_line line("simulate", "Run worlds of simulated members and check them at every point.",
                    "  troupe simulate --seeds 1..1000\n"
                    "  troupe simulate --seeds 1 --members 1024 --steps 10\n"
                    "  troupe simulate examples/chaos/cut-and-heal.toml --seeds 1..20\n");
  std::string scenario, seeds_text = "1..100";
  campaign_settings campaign;
  std::uint32_t backups = 0;
  bool json = false;
  line.app().add_option(
      "SCENARIO", scenario,
      "a scenario file (TOML), as for troupe chaos; else worlds drawn from seeds");
  const CLI::Option* seeds_given = line.app().add_option(
      "--seeds", seeds_text, "one seed, or the first and the last as in 1..1000");
  line.app()
      .add_option("--members", campaign.members,
                  "members of each world; 0: two to eight, drawn by each seed")
      ->check(CLI::Range(0u, most_members));
  line.app()
      .add_option("--steps", campaign.steps, "steps of each world")
      ->check(CLI::Range(std::uint64_t{1}, most_steps));
  line.app()
      .add_option("--faults", campaign.faults,
                  "kills, freezes, cuts and joins in each world, at most")
      ->check(CLI::Range(0u, 64u));
  const CLI::Option* fixed_backups =
      line.app()
          .add_option("--backups", backups,
                      "copies of each block besides the primary's; without it drawn by each seed")
          ->check(CLI::Range(0u, most_backups));
  line.app().add_flag("--json", json, "one JSON object instead of text");
  if (const auto code = line.parse(args, out, err)) return *code;
  const auto seeds = seeds_from(seeds_text);
  if (!seeds) {
    return fail({exit_code::usage,
                 fmt::format("--seeds takes a number, or two as in 1..1000, not \"{}\" (see troupe "
                             "simulate --help)",
                             seeds_text)},
                err);
  }
  if (!scenario.empty()) {
    for (const CLI::Option* o : line.app().get_options()) {
      const std::string name = o->get_name();
      const bool of_worlds =
          name == "--members" || name == "--steps" || name == "--faults" || name == "--backups";
      if (!of_worlds || o->count() == 0) continue;
      return fail({exit_code::usage,
                   fmt::format("{} says nothing beside {}: the scenario and its config say it",
                               name, scenario)},
                  err);
    }
    return simulate_scenario(scenario, *seeds_given ? seeds : std::nullopt, json, out, err);
  }
  campaign.first_seed = seeds->first;
  campaign.last_seed = seeds->second;
  if (*fixed_backups) campaign.backups = backups;
  const campaign_outcome outcome = sim::run_campaign(campaign, [&](const seed_outcome& failed) {
    err << fmt::format("seed {}: {}: {}\n  again: {}\n", failed.seed, failed.invariant, failed.what,
                       again(campaign, failed.seed));
    for (const std::string& line_of_story : failed.story) err << "  " << line_of_story << '\n';
  });
  if (json) {
    print_json(campaign, outcome, out);
  } else {
    print_text(campaign, outcome, out);
  }
  return outcome.failures.empty() ? 0 : static_cast<int>(exit_code::defect);
}

}  // namespace troupe::actors::cli
