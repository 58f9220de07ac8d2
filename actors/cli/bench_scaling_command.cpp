// `troupe bench scaling`: does a second worker double the speed, and what does it cost to hold
// every block twice? Runs of this program, as `train` starts them, in a temporary directory; the
// three kinds of runs take turns, so that a machine that slows down slows all of them.

#include <fmt/format.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "actors/cli/bench_scaling.hpp"
#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/from_settings.hpp"
#include "actors/model_shape.hpp"
#include "actors/plan_preview.hpp"
#include "actors/records.hpp"
#include "actors/text.hpp"
#include "compute/random.hpp"
#include "config/base/json.hpp"
#include "config/load.hpp"

namespace troupe::actors::cli {
namespace {

constexpr std::size_t warmup = 2;

class temporary_folder {
 public:
  static result<temporary_folder> make() {
    std::error_code trouble;
    std::filesystem::path base = std::filesystem::temp_directory_path(trouble);
    if (trouble) base = "/tmp";
    std::string name = base / "troupe-bench-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      return error{exit_code::io, fmt::format("cannot make a temporary directory in {}: {}; set "
                                              "TMPDIR to another place",
                                              base.string(), std::strerror(errno))};
    }
    temporary_folder made;
    made.path_ = std::move(name);
    return made;
  }
  temporary_folder(temporary_folder&& o) noexcept : path_(std::exchange(o.path_, {})) {}
  temporary_folder& operator=(temporary_folder&&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  temporary_folder() = default;
  std::string path_;
};

// Letters and spaces, the same on every machine.
status write_text(const std::string& path, std::size_t size) {
  constexpr std::string_view letters = "etaoin shrdlu cmfwyp vbgkq jxz";
  std::string text(size, '\n');
  for (std::size_t i = 0; i < size; ++i) {
    const auto word = compute::random_word(
        {.seed = 1, .purpose = compute::random_purpose::sampling, .step = 0}, i);
    if (i % 64 != 63) text[i] = letters[word % letters.size()];
  }
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (out.flush()) return done{};
  return error{exit_code::io, fmt::format("cannot write {}: {}", path, std::strerror(errno))};
}

// This program with these words, told to end if this process does. Its output goes to `log`.
result<pid_t> start(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    return error{exit_code::io, fmt::format("cannot start a process: {}", std::strerror(errno))};
  }
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(static_cast<int>(exit_code::interrupted));
  const int to = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (to >= 0) {
    dup2(to, STDOUT_FILENO);
    dup2(to, STDERR_FILENO);
  }
  execv("/proc/self/exe", argv.data());
  _exit(static_cast<int>(exit_code::io));
}

struct run_wanted {
  std::string name;  // of its directory
  int workers = 1;
  std::vector<std::string> sets;
};

struct bench {
  std::string config;
  std::vector<std::string> sets;  // of every run
  std::uint64_t steps = 0;
  const temporary_folder& folder;

  result<pid_t> begin(const run_wanted& run) const {
    std::vector<std::string> words = {"troupe",
                                      "train",
                                      config,
                                      "--workers",
                                      fmt::format("{}", run.workers),
                                      "--run-dir",
                                      folder.file(run.name)};
    for (const auto* list : {&sets, &run.sets}) {
      for (const std::string& set : *list) words.insert(words.end(), {"--set", set});
    }
    return start(words, folder.file(run.name + ".log"));
  }

  // The times of the steps that count.
  result<std::vector<double>> end(const run_wanted& run, pid_t child) const {
    int how = 0;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) {
      std::ifstream log(folder.file(run.name + ".log"));
      const std::string text{std::istreambuf_iterator<char>(log), {}};
      return error{WIFEXITED(how) ? static_cast<exit_code>(WEXITSTATUS(how)) : exit_code::too_few,
                   "a measured run failed; it said:\n" + text};
    }
    result<std::vector<step_record>> lines =
        read_steps(real_file_system(), folder.file(run.name + "/steps.jsonl"));
    if (!lines) return lines.failure();
    std::vector<double> seconds;
    for (std::size_t i = warmup; i < lines->size(); ++i) seconds.push_back((*lines)[i].seconds);
    return seconds;
  }

  // At the same time, from start to end.
  result<std::vector<std::vector<double>>> measure(const std::vector<run_wanted>& runs) const {
    std::vector<std::pair<const run_wanted*, pid_t>> children;
    std::optional<error> trouble;
    for (const run_wanted& run : runs) {
      std::error_code ignored;
      std::filesystem::remove_all(folder.file(run.name), ignored);
      result<pid_t> child = begin(run);
      if (child) {
        children.emplace_back(&run, *child);
      } else if (!trouble) {
        trouble = child.failure();
      }
    }
    std::vector<std::vector<double>> times;
    for (const auto& [run, child] : children) {
      result<std::vector<double>> one = end(*run, child);
      if (one) {
        times.push_back(std::move(*one));
      } else if (!trouble) {
        trouble = one.failure();
      }
    }
    if (trouble) return *trouble;
    return times;
  }

  result<nlohmann::json> report(const run_wanted& run) const {
    const std::string path = folder.file(run.name + "/report.json");
    result<std::string> text = read_file(real_file_system(), path, 1 << 20);
    if (!text) return text.failure();
    return parse_json(*text, path);
  }
};

// What the run's members send in a step by the plan. Bytes are known as of each member's last vote:
// the parameters of the last step are behind it.
double predicted_bytes(const config::settings& s, std::uint64_t steps) {
  const model::description d = description_from(s);
  const plan_preview p =
      preview_plan(sizes_of(shape_of(d, model::make_layout(d))),
                   {.threads = {1, 1},
                    .virtual_ranks = static_cast<std::uint32_t>(s.parallelism.virtual_ranks),
                    .backups = 1});
  double before_vote = 0, parameters = 0;
  for (const protocol::member_cost& c : p.costs) {
    before_vote += static_cast<double>(c.sends.nodes + c.sends.sums);
    parameters += static_cast<double>(c.sends.parameters);
  }
  const auto n = static_cast<double>(steps);
  return before_vote + parameters * (n - 1) / n;
}

struct outcome {
  scaling_figures speed;
  double bytes_sent = 0, bytes_predicted = 0;  // in a step, by both workers
  double bytes_over() const { return bytes_sent / bytes_predicted - 1; }
};

result<outcome> measure(const bench& b, const config::settings& s, int pairs, std::ostream& err) {
  const std::int64_t batch = s.training.global_batch_size, ranks = s.parallelism.virtual_ranks;
  const std::int64_t half_ranks = ranks % 2 == 0 ? ranks / 2 : ranks;
  std::vector<std::string> half = {
      fmt::format("training.global_batch_size={}", batch / 2),
      fmt::format("training.micro_batch_size={}", std::min(s.training.micro_batch_size, batch / 2)),
      fmt::format("parallelism.virtual_ranks={}", half_ranks)};
  const run_wanted together{"together", 2, {"fault_tolerance.backups=1"}};
  const run_wanted unprotected{"unprotected", 2, {"fault_tolerance.backups=0"}};
  std::vector<scaling_round> rounds;
  for (int i = 0; i < pairs; ++i) {
    err << fmt::format("round {} of {} ...\n", i + 1, pairs) << std::flush;
    scaling_round round;
    auto times = b.measure({together});
    if (!times) return times.failure();
    round.together = times->at(0);
    times = b.measure({{"alone-0", 1, half}, {"alone-1", 1, half}});
    if (!times) return times.failure();
    round.alone[0] = times->at(0);
    round.alone[1] = times->at(1);
    times = b.measure({unprotected});
    if (!times) return times.failure();
    round.unprotected = times->at(0);
    rounds.push_back(std::move(round));
  }
  result<nlohmann::json> told = b.report(together), bare = b.report(unprotected);
  if (!told) return told.failure();
  if (!bare) return bare.failure();
  if ((*told)["weights_hash"] != (*bare)["weights_hash"]) {
    return error{exit_code::defect, "backups changed the weights' bits"};
  }
  outcome all;
  all.speed = scaling_of(rounds, static_cast<double>(batch * s.training.seq_len));
  all.bytes_sent = (*told)["bytes_sent"].get<double>() / static_cast<double>(b.steps);
  all.bytes_predicted = predicted_bytes(s, b.steps);
  return all;
}

void print_text(const outcome& o, std::ostream& out) {
  const auto speed = [](const spread& s) {
    return fmt::format("{:.0f} tokens a second ({:.0f} to {:.0f})", s.median, s.lowest, s.highest);
  };
  const auto share = [](const spread& s) {
    return fmt::format("{:.1f} % ({:.1f} to {:.1f})", 100 * s.median, 100 * s.lowest,
                       100 * s.highest);
  };
  out << table({{"two workers together", speed(o.speed.tokens_together)},
                {"without backups", speed(o.speed.tokens_unprotected)},
                {"two runs side by side", speed(o.speed.tokens_alone)},
                {"efficiency", share(o.speed.efficiency)},
                {"efficiency, no backups", share(o.speed.efficiency_unprotected)},
                {"cost of protection", share(o.speed.protection_cost)},
                {"sent in a step", fmt::format("{}, {:+.2f} % of what the plan predicts",
                                               short_bytes(o.bytes_sent), 100 * o.bytes_over())}});
}

void print_json(const outcome& o, const bench& b, int pairs, std::ostream& out) {
  json_page page;
  page.number("efficiency_2_workers", o.speed.efficiency.median)
      .number("protection_cost", o.speed.protection_cost.median)
      .number("efficiency_2_workers_unprotected", o.speed.efficiency_unprotected.median)
      .number("bytes_sent_per_step", o.bytes_sent)
      .number("bytes_predicted_per_step", o.bytes_predicted)
      .number("bytes_over_formula", o.bytes_over())
      .i64("pairs", pairs)
      .u64("steps", b.steps);
  const auto put = [&page](std::string_view name, const spread& s) {
    page.begin_object(name)
        .number("median", s.median)
        .number("min", s.lowest)
        .number("max", s.highest)
        .end();
  };
  put("efficiency_2_workers_spread", o.speed.efficiency);
  put("protection_cost_spread", o.speed.protection_cost);
  put("tokens_per_second_2_workers", o.speed.tokens_together);
  put("tokens_per_second_unprotected", o.speed.tokens_unprotected);
  put("tokens_per_second_side_by_side", o.speed.tokens_alone);
  out << page.finish();
}

}  // namespace

int bench_scaling_command(arguments args, std::ostream& out, std::ostream& err) {
  split_arguments split = take_overrides(args);
  command_line line("bench scaling",
                    "Compares a world of two workers with two runs side by side, one thread each.",
                    "  troupe bench scaling\n"
                    "  troupe bench scaling examples/gpt2-10m.toml --pairs 5 --steps 20 --json\n");
  std::string config_path = "examples/gpt2-10m.toml";
  int pairs = 3, steps = 10;
  bool json = false;
  std::vector<std::string> sets;
  line.app().add_option("CONFIG", config_path, "config file of the model");
  line.app()
      .add_option("--pairs", pairs, "how often the measurements take turns")
      ->check(CLI::Range(1, 1000));
  line.app()
      .add_option("--steps", steps, "steps to measure in each run, after two to warm up")
      ->check(CLI::Range(1, 100000));
  line.app().add_option("--set", sets, "section.key=value, as for train")->allow_extra_args(false);
  line.app().add_flag("--json", json, "one JSON object instead of text");
  if (const auto code = line.parse(split.rest, out, err)) return *code;
  sets.insert(sets.end(), split.overrides.begin(), split.overrides.end());

  result<temporary_folder> folder = temporary_folder::make();
  if (!folder) return fail(folder.failure(), err);
  const std::uint64_t all_steps = static_cast<std::uint64_t>(steps) + warmup;
  sets.insert(sets.end(),
              {"data.sources[0].path=" + folder->file("text.txt"),
               fmt::format("training.steps={}", all_steps), "lr_scheduler.warmup_steps=0",
               "validation.enable=false", "checkpoint.enable=false", "compute.threads=1",
               "metrics.prometheus_listen="});
  result<config::loaded> loaded = config::load(
      {.file = config_path, .text = {}, .environment = environment(), .overrides = sets});
  if (!loaded) {
    err << loaded.failure().message << "\n";
    return static_cast<int>(loaded.failure().code);
  }
  const config::settings& s = loaded->settings;
  const std::int64_t batch = s.training.global_batch_size, ranks = s.parallelism.virtual_ranks;
  if (batch % 2 != 0 || ranks < 2 || (batch / 2) % (ranks % 2 == 0 ? ranks / 2 : ranks) != 0) {
    return fail({exit_code::usage,
                 fmt::format("{}: a batch of {} sequences in {} virtual ranks cannot be halved; "
                             "try --set training.global_batch_size=8 --set "
                             "parallelism.virtual_ranks=8",
                             config_path, batch, ranks)},
                err);
  }
  const auto size = static_cast<std::size_t>(4 * batch * (s.training.seq_len + 1));
  if (status written = write_text(folder->file("text.txt"), std::max(size, std::size_t{1} << 18));
      !written) {
    return fail(written.failure(), err);
  }
  const bench b{config_path, sets, all_steps, *folder};
  result<outcome> found = measure(b, s, pairs, err);
  if (!found) return fail(found.failure(), err);
  if (json) {
    print_json(*found, b, pairs, out);
  } else {
    print_text(*found, out);
  }
  return 0;
}

}  // namespace troupe::actors::cli
