// `troupe bench step`: how fast this machine trains, through the same code as `train`. Every figure
// stands beside the fused multiply-add rate that the same cores reached just before and after,
// since shared machines are noisy: a run between two calibrations that differ by more than 5 % says
// so.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <vector>

#include "actors/cli/bench_transport.hpp"
#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/from_settings.hpp"
#include "actors/text.hpp"
#include "actors/trainer.hpp"
#include "compute/cpu/kernels.hpp"
#include "compute/random.hpp"
#include "compute/timed_executor.hpp"
#include "config/base/json.hpp"
#include "config/load.hpp"

namespace troupe::actors::cli {
namespace {

struct bench_figures {
  std::vector<double> step_seconds;
  double peak_before = 0, peak_after = 0;  // GFLOP/s
  double flops_per_token = 0;
  double tokens_per_step = 0;
  double parameters = 0;
  std::size_t activation_bytes = 0;
  compute::op_times times;

  double median_seconds() const { return at(0.5); }
  double at(double share) const {
    std::vector<double> sorted = step_seconds;
    std::ranges::sort(sorted);
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
  }
  double tokens_per_second() const { return tokens_per_step / median_seconds(); }
  double model_gflops() const { return tokens_per_second() * flops_per_token / 1e9; }
  double peak() const { return std::max(peak_before, peak_after); }
  bool steady() const { return std::abs(peak_before - peak_after) <= 0.05 * peak(); }
};

bench_figures measure(const config::settings& s, int steps) {
  std::unique_ptr<compute::executor> device = executor_from(s);
  compute::timed_executor timed(*device);
  const model::description d = description_from(s);
  trainer train(timed, d, trainer_settings_from(s));
  train.initialize();

  const std::size_t rows =
      static_cast<std::size_t>(s.training.global_batch_size * s.training.seq_len);
  std::vector<std::int32_t> tokens(rows), targets(rows);
  bench_figures figures;
  figures.flops_per_token =
      model::flops_per_token(d, train.layout(), static_cast<std::size_t>(s.training.seq_len));
  figures.tokens_per_step = static_cast<double>(rows);
  figures.parameters = static_cast<double>(model::parameter_count(train.layout()));
  std::uint64_t updates = 0;
  constexpr int warmup = 2;
  for (int n = 1; n <= warmup + steps; ++n) {
    const compute::random_key key{.seed = s.training.seed,
                                  .purpose = compute::random_purpose::sampling,
                                  .step = static_cast<std::uint64_t>(n)};
    for (std::size_t i = 0; i < rows; ++i) {
      tokens[i] = static_cast<std::int32_t>(compute::random_word(key, i) % d.vocabulary);
      targets[i] = static_cast<std::int32_t>(compute::random_word(key, rows + i) % d.vocabulary);
    }
    if (n == warmup + 1) {
      figures.peak_before = compute::cpu::measure_fma_peak(device->threads());
      timed.reset();
    }
    const auto start = std::chrono::steady_clock::now();
    updates = train.step(static_cast<std::uint64_t>(n), updates, tokens, targets)->updates;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (n > warmup) figures.step_seconds.push_back(took.count());
  }
  figures.peak_after = compute::cpu::measure_fma_peak(device->threads());
  figures.activation_bytes = train.activation_bytes();
  figures.times = timed.times();
  return figures;
}

void print_json(const bench_figures& f, int threads, std::ostream& out) {
  json_page page;
  page.i64("threads", threads)
      .number("tokens_per_second", f.tokens_per_second())
      .number("model_gflops", f.model_gflops())
      .number("fma_peak_gflops", f.peak())
      .number("model_flops_utilization", f.model_gflops() / f.peak())
      .text("instruction_set", compute::cpu::fma_instruction_set())
      .number("flops_per_token", f.flops_per_token)
      .number("parameters", f.parameters)
      .number("step_seconds_median", f.median_seconds())
      .number("step_seconds_min", f.at(0))
      .number("step_seconds_max", f.at(1))
      .i64("steps", static_cast<std::int64_t>(f.step_seconds.size()))
      .number("fma_peak_gflops_before", f.peak_before)
      .number("fma_peak_gflops_after", f.peak_after)
      .boolean("steady", f.steady())
      .u64("peak_activation_bytes", f.activation_bytes);
  page.begin_array("operations");
  for (const auto& [name, time] : f.times) {
    page.begin_element()
        .text("name", name)
        .number("seconds_per_step", time.seconds / static_cast<double>(f.step_seconds.size()))
        .number("gflops", time.seconds > 0 ? time.flops / time.seconds / 1e9 : 0)
        .end();
  }
  out << page.finish();
}

void print_text(const bench_figures& f, int threads, std::ostream& out) {
  out << table({{"threads", fmt::format("{}", threads)},
                {"parameters", short_count(f.parameters)},
                {"tokens per second", fmt::format("{:.0f} (median of {} steps)",
                                                  f.tokens_per_second(), f.step_seconds.size())},
                {"step", fmt::format("{:.1f} ms ({:.1f} to {:.1f})", 1e3 * f.median_seconds(),
                                     1e3 * f.at(0), 1e3 * f.at(1))},
                {"model GFLOP/s", fmt::format("{:.1f}, {:.1f} % of the measured peak",
                                              f.model_gflops(), 100 * f.model_gflops() / f.peak())},
                {"peak GFLOP/s", fmt::format("{:.1f} before, {:.1f} after ({}){}", f.peak_before,
                                             f.peak_after, compute::cpu::fma_instruction_set(),
                                             f.steady() ? "" : "; not steady: measure again")},
                {"activations", short_bytes(static_cast<double>(f.activation_bytes))}});
  double total = 0;
  for (double s : f.step_seconds) total += s;
  std::vector<std::pair<std::string, compute::op_time>> sorted(f.times.begin(), f.times.end());
  std::ranges::sort(
      sorted, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  out << "  where the time goes:\n";
  double covered = 0;
  for (const auto& [name, time] : sorted) {
    covered += time.seconds;
    out << fmt::format("    {:<24} {:5.1f} %  {:8.2f} ms a step", name, 100 * time.seconds / total,
                       1e3 * time.seconds / static_cast<double>(f.step_seconds.size()));
    if (time.flops > 0) out << fmt::format("  {:6.1f} GFLOP/s", time.flops / time.seconds / 1e9);
    out << "\n";
  }
  out << fmt::format("    {:<24} {:5.1f} %\n", "outside of operations",
                     100 * (total - covered) / total);
}

int bench_step(arguments args, std::ostream& out, std::ostream& err) {
  split_arguments split = take_overrides(args);
  command_line line("bench step",
                    "Measures training steps on random tokens through the path of `train`.",
                    "  troupe bench step examples/gpt2-10m.toml --threads 1\n"
                    "  troupe bench step examples/gpt2-10m.toml --steps 20 --json\n");
  std::string config_path;
  int threads = 0, steps = 10;
  bool json = false;
  std::vector<std::string> sets;
  line.app().add_option("CONFIG", config_path, "config file of the model")->required();
  line.app().add_option("--threads", threads, "threads (0: all cores)")->check(CLI::Range(0, 1024));
  line.app()
      .add_option("--steps", steps, "steps to measure, after two to warm up")
      ->check(CLI::Range(1, 100000));
  line.app().add_option("--set", sets, "section.key=value, as for train")->allow_extra_args(false);
  line.app().add_flag("--json", json, "one JSON object instead of text");
  if (const auto code = line.parse(split.rest, out, err)) return *code;
  sets.insert(sets.end(), split.overrides.begin(), split.overrides.end());
  if (threads > 0) sets.push_back(fmt::format("compute.threads={}", threads));
  result<config::loaded> loaded = config::load(
      {.file = config_path, .text = {}, .environment = environment(), .overrides = sets});
  if (!loaded) {
    err << loaded.failure().message << "\n";
    return static_cast<int>(loaded.failure().code);
  }
  if (status sound = model::check(description_from(loaded->settings)); !sound) {
    err << "troupe: " << sound.failure().message << "\n";
    return static_cast<int>(sound.failure().code);
  }
  const bench_figures figures = measure(loaded->settings, steps);
  const int used = executor_from(loaded->settings)->threads();
  if (json) {
    print_json(figures, used, out);
  } else {
    print_text(figures, used, out);
  }
  return 0;
}

}  // namespace

int bench_command(arguments args, std::ostream& out, std::ostream& err) {
  if (!args.empty() && args.front() == "step") return bench_step(args.subspan(1), out, err);
  if (!args.empty() && args.front() == "scaling") {
    return bench_scaling_command(args.subspan(1), out, err);
  }
  if (!args.empty() && args.front() == "transport") {
    return bench_transport(args.subspan(1), out, err);
  }
  const bool help = !args.empty() && (args.front() == "--help" || args.front() == "-h");
  (help ? out : err) << "usage: troupe bench step CONFIG [--threads N] [--steps N] [--json]\n"
                        "       troupe bench scaling [CONFIG] [--pairs N] [--steps N] [--json]\n"
                        "       troupe bench transport [--json]\n";
  return help ? 0 : static_cast<int>(exit_code::usage);
}

}  // namespace troupe::actors::cli
