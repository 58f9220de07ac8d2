#include "actors/chaos/undisturbed.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/chaos/measure.hpp"
#include "config/base/json.hpp"

namespace troupe::actors::chaos {
namespace {

// Written last: a folder with it is whole.
constexpr std::string_view mark = "reference.json";

result<reference_facts> read(file_system& files, const std::string& directory) {
  const std::string path = join_path(directory, mark);
  const result<std::string> text = read_file(files, path, 1 << 16);
  if (!text) return text.failure();
  const result<nlohmann::json> parsed = parse_json(*text, path);
  if (!parsed) return parsed.failure();
  json_fields fields(*parsed, path);
  reference_facts facts;
  facts.weights_hash = fields.text("weights_hash");
  facts.state_hash = fields.text("state_hash");
  facts.goodput = fields.number("goodput");
  if (status whole = fields.finish(); !whole) return whole.failure();
  auto steps = read_steps(files, join_path(directory, "steps.jsonl"));
  if (!steps) return steps.failure();
  facts.steps = std::move(*steps);
  return facts;
}

}  // namespace

result<reference_facts> undisturbed_run(const scenario& s, const trial_settings& settings,
                                        file_system& files, const clock_source& clock) {
  const std::string& directory = settings.run_directory;
  if (auto kept = read(files, directory)) {
    if (settings.say) settings.say("the undisturbed run is there already: " + directory);
    return kept;
  }
  if (status removed = remove_all(files, directory); !removed) return removed.failure();
  if (settings.say) settings.say("the undisturbed run comes first: " + directory);
  scenario calm = s;
  // What the run computes from is no disturbance: a step that is skipped there is skipped here.
  std::erase_if(calm.faults, [](const fault& f) { return f.kind != fault_kind::nan; });
  calm.random.reset();
  calm.quiet.reset();
  result<trial_outcome> run = run_on_processes(calm, s.seed, settings, files, clock);
  if (!run) return run.failure();
  const run_facts& facts = run->facts;
  for (const fault& f : calm.faults) {
    const bool happened = std::ranges::any_of(facts.faults, [&](const injected_fault& i) {
      return i.what.which.fault == f.id && i.proven;
    });
    if (happened || !f.must_happen) continue;
    return error{exit_code::io, fmt::format("{} did not happen in the undisturbed run in {}, which "
                                            "has to have it as well",
                                            f.id, directory)};
  }
  if (facts.exit != 0 || facts.guard_struck || !facts.records_trouble.empty() ||
      facts.steps.empty() || facts.weights_hash.empty()) {
    const std::string how = facts.guard_struck ? "took longer than " + to_text(s.guard)
                            : facts.records_trouble.empty()
                                ? fmt::format("ended with exit code {}", facts.exit)
                                : facts.records_trouble;
    const auto code =
        facts.exit > 0 && facts.exit < 128 ? static_cast<exit_code>(facts.exit) : exit_code::io;
    return error{code, fmt::format("the undisturbed run in {} {}; its last words:\n{}", directory,
                                   how, run->last_words)};
  }
  const auto rates = measure(facts, std::nullopt).metrics;
  json_page page;
  page.text("weights_hash", facts.weights_hash)
      .text("state_hash", facts.state_hash)
      .number("goodput", rates.at("goodput"));
  if (status kept = replace(files, join_path(directory, mark), page.finish()); !kept) {
    return kept.failure();
  }
  return read(files, directory);
}

}  // namespace troupe::actors::chaos
