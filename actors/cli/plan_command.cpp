// `troupe plan`: who would compute and keep what, without starting anything.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <ostream>

#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/from_settings.hpp"
#include "actors/memory_check.hpp"
#include "actors/model_shape.hpp"
#include "actors/plan_preview.hpp"
#include "actors/plan_text.hpp"
#include "actors/protocol/planner.hpp"
#include "actors/text.hpp"
#include "config/base/json.hpp"
#include "config/load.hpp"

namespace troupe::actors::cli {
namespace {

using protocol::member_cost;

constexpr int most_workers = 16384;

error misuse(std::string message) {
  return {exit_code::usage, std::move(message) + " (see troupe plan --help)"};
}

// "2" for all workers, or "2,1,1", one number each.
result<std::vector<int>> threads_from(const std::string& text, int workers) {
  std::vector<int> threads;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    int number = 0;
    const auto [end, trouble] = std::from_chars(text.data() + at, text.data() + comma, number);
    if (trouble != std::errc() || end != text.data() + comma || number < 1 || number > 1024) {
      return misuse(fmt::format(
          "--threads takes a number from 1 to 1024, or one for each worker as in 2,1,1, not \"{}\"",
          text));
    }
    threads.push_back(number);
    at = comma + 1;
  }
  if (threads.size() == 1) threads.resize(static_cast<std::size_t>(workers), threads.front());
  if (threads.size() != static_cast<std::size_t>(workers)) {
    return misuse(fmt::format("--threads lists {} workers, --workers {}", threads.size(), workers));
  }
  return threads;
}

std::string ranks_of(const protocol::plan_member& m) {
  if (m.leaves == 0) return "spare";
  if (m.leaves == 1) return fmt::format("{}", m.first_leaf);
  return fmt::format("{}-{}", m.first_leaf, m.first_leaf + m.leaves - 1);
}

std::string bytes(std::uint64_t n) { return short_bytes(static_cast<double>(n)); }

// Columns as wide as their widest entry; the first one to the left, numbers to the right.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    text += fmt::format("  {:<{}}", row[0], widths[0]);
    for (std::size_t i = 1; i < row.size(); ++i) text += fmt::format("  {:>{}}", row[i], widths[i]);
    text += '\n';
  }
  return text;
}

// What a member allocates for forward and backward, by member.
std::vector<std::uint64_t> activations_of(const plan_preview& p, const config::settings& s) {
  const model::description d = description_from(s);
  const trainer_settings training = trainer_settings_from(s);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> known;  // by place and length
  std::vector<std::uint64_t> all;
  for (const protocol::plan_member& m : p.plan.members) {
    const auto [at, fresh] = known.try_emplace({m.first_leaf, m.leaves}, 0);
    if (fresh) {
      const member_share share{p.plan.virtual_ranks, m.first_leaf, m.leaves, {}, {}};
      at->second = bytes_of(d, training, share).activations;
    }
    all.push_back(at->second);
  }
  return all;
}

void print_text(const plan_preview& p, std::uint32_t backups,
                const std::vector<std::uint64_t>& activations, std::ostream& out) {
  std::uint64_t elements = 0, sent = 0;
  for (const member_cost& c : p.costs) {
    elements += c.primary_elements;
    sent += c.sends.total();
  }
  out << table({{"workers", fmt::format("{}", p.plan.members.size())},
                {"virtual ranks", fmt::format("{}", p.plan.virtual_ranks)},
                {"parameters", short_count(static_cast<double>(elements))},
                {"backups", fmt::format("{} of each block wanted, {} possible", backups,
                                        p.plan.placement.front().backups.size())},
                {"sent a step", bytes(sent) + " by all together"},
                {"exposed", p.plan.exposed ? protocol::why_exposed(p.plan) : "no"}});
  std::vector<std::vector<std::string>> work{{"who", "virtual ranks", "nodes", "busy", "primary",
                                              "backup", "sends nodes", "sums", "parameters",
                                              "in all"}};
  std::vector<std::vector<std::string>> memory{
      {"who", "parameters", "moments", "sums", "nodes", "slots", "activations", "in all"}};
  for (std::size_t i = 0; i < p.costs.size(); ++i) {
    const member_cost& c = p.costs[i];
    const protocol::plan_member& m = p.plan.members[i];
    work.push_back({m.name, ranks_of(m), fmt::format("{}", c.nodes),
                    fmt::format("{:.0f} %", 100 * c.busy),
                    fmt::format("{} blocks", c.primary_blocks),
                    fmt::format("{} blocks", c.backup_blocks), bytes(c.sends.nodes),
                    bytes(c.sends.sums), bytes(c.sends.parameters), bytes(c.sends.total())});
    memory.push_back({m.name, bytes(c.holds.parameters), bytes(c.holds.moments),
                      bytes(c.holds.sums), bytes(c.holds.nodes), bytes(c.holds.slots),
                      bytes(activations[i]), bytes(c.holds.total() + activations[i])});
  }
  out << "\nwork, blocks and bytes sent in a step:\n" << aligned(work);
  out << "\nmemory:\n" << aligned(memory);
}

void print_json(const plan_preview& p, const std::vector<int>& threads,
                const std::vector<std::uint64_t>& activations, std::ostream& out) {
  json_page page;
  page.u64("workers", p.plan.members.size())
      .u64("virtual_ranks", p.plan.virtual_ranks)
      .boolean("exposed", p.plan.exposed)
      .text("why_exposed", protocol::why_exposed(p.plan))
      .begin_array("members");
  for (std::size_t i = 0; i < p.costs.size(); ++i) {
    const member_cost& c = p.costs[i];
    const protocol::plan_member& m = p.plan.members[i];
    page.begin_element()
        .text("name", m.name)
        .i64("threads", threads[i])
        .u64("first_virtual_rank", m.first_leaf)
        .u64("virtual_ranks", m.leaves)
        .u64("tree_nodes", c.nodes)
        .number("busy", c.busy)
        .u64("primary_blocks", c.primary_blocks)
        .u64("backup_blocks", c.backup_blocks)
        .u64("primary_elements", c.primary_elements)
        .u64("backup_elements", c.backup_elements);
    page.begin_object("memory_bytes")
        .u64("parameters", c.holds.parameters)
        .u64("moments", c.holds.moments)
        .u64("sums", c.holds.sums)
        .u64("nodes", c.holds.nodes)
        .u64("slots", c.holds.slots)
        .u64("activations", activations[i])
        .u64("total", c.holds.total() + activations[i])
        .end();
    page.begin_object("sent_bytes_per_step")
        .u64("nodes", c.sends.nodes)
        .u64("sums", c.sends.sums)
        .u64("parameters", c.sends.parameters)
        .u64("total", c.sends.total())
        .end();
    page.end();
  }
  page.end();
  std::string text = print_plan(p.plan);
  while (text.ends_with('\n')) text.pop_back();
  page.raw("plan", text);
  out << page.finish();
}

}  // namespace

int plan_command(arguments args, std::ostream& out, std::ostream& err) {
  split_arguments split = take_overrides(args);
  command_line line("plan", "Who would compute and keep what, without starting anything.",
                    "  troupe plan examples/gpt2-10m.toml --workers 4\n"
                    "  troupe plan examples/gpt2-10m.toml --workers 3 --threads 4,2,2 --json\n");
  std::string config_file, threads_text = "1";
  std::vector<std::string> sets;
  int workers = 1;
  std::optional<std::uint32_t> backups_wanted;
  bool json = false;
  line.app().add_option("CONFIG", config_file, "TOML file")->required();
  line.app()
      .add_option("--workers", workers, "workers on this machine")
      ->check(CLI::Range(1, most_workers));
  line.app().add_option("--threads", threads_text,
                        "threads of each worker, or one number for each as in 2,1,1: who has more "
                        "gets more to do");
  line.app()
      .add_option("--backups", backups_wanted,
                  "copies of each block besides the primary's (fault_tolerance.backups)")
      ->check(CLI::Range(0, 16));
  line.app()
      .add_option("--set", sets, "section.key=value; --section.key=value is the same")
      ->allow_extra_args(false);
  line.app().add_flag("--json", json, "one JSON object, with the plan itself, instead of text");
  if (const auto code = line.parse(split.rest, out, err)) return *code;
  const result<std::vector<int>> threads = threads_from(threads_text, workers);
  if (!threads) return fail(threads.failure(), err);
  split.overrides.insert(split.overrides.end(), sets.begin(), sets.end());
  const result<config::loaded> loaded =
      config::load({config_file, {}, environment(), split.overrides});
  if (!loaded) {
    err << loaded.failure().message << '\n';  // begins with file and line, not with the program
    return static_cast<int>(loaded.failure().code);
  }
  const model::description d = description_from(loaded->settings);
  if (status sound = model::check(d); !sound) return fail(sound.failure(), err);
  const std::uint32_t backups =
      backups_wanted.value_or(static_cast<std::uint32_t>(loaded->settings.fault_tolerance.backups));
  const plan_preview preview = preview_plan(
      sizes_of(shape_of(d, model::make_layout(d))),
      {.threads = *threads,
       .virtual_ranks = static_cast<std::uint32_t>(loaded->settings.parallelism.virtual_ranks),
       .backups = backups});
  const std::vector<std::uint64_t> activations = activations_of(preview, loaded->settings);
  if (json) {
    print_json(preview, *threads, activations, out);
  } else {
    print_text(preview, backups, activations, out);
  }
  return 0;
}

}  // namespace troupe::actors::cli
