// `troupe train`: the launcher. Checks the config, claims the run directory, writes the effective
// config into it and starts one worker process, which is this program again with the hidden words
// `worker`.

#include <fmt/format.h>

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <ostream>

#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/from_settings.hpp"
#include "actors/launcher.hpp"
#include "actors/machine.hpp"
#include "actors/memory_check.hpp"
#include "actors/run_address.hpp"
#include "actors/status_server.hpp"
#include "actors/stop_signals.hpp"
#include "actors/training_run.hpp"
#include "config/load.hpp"
#include "config/options.hpp"
#include "config/print.hpp"

namespace troupe::actors::cli {
namespace {

// "auto", "never" or a step ("120", "step-120", "step-00000120").
std::optional<checkpoint::wanted> parse_resume(const std::string& text) {
  if (text == "auto") return checkpoint::wanted{checkpoint::wanted::kind::newest, 0};
  if (text == "never") return checkpoint::wanted{checkpoint::wanted::kind::none, 0};
  const std::string digits = text.starts_with("step-") ? text.substr(5) : text;
  std::uint64_t step = 0;
  const auto [end, trouble] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (trouble != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return checkpoint::wanted{checkpoint::wanted::kind::step, step};
}

// More processes than this cannot make a world yet.
constexpr int most_workers = 1;

struct common_options {
  std::string config, run_dir, resume = "auto", report;
  bool quiet = false;
};

int check_resume(const common_options& options, std::ostream& err) {
  if (parse_resume(options.resume)) return 0;
  err << "troupe: --resume takes auto, never or a step, not \"" << options.resume << "\"\n";
  return static_cast<int>(exit_code::usage);
}

// One worker a process, and every worker its share of the cores unless the config says a number.
std::vector<worker_start> starts_of(const common_options& options, const config::settings& s,
                                    const run_directory& run, const std::string& config,
                                    int workers) {
  const std::vector<int> shares = share_cores(usable_cores(), workers);
  std::vector<worker_start> starts;
  for (int i = 0; i < workers; ++i) {
    const std::string name = fmt::format("worker-{}", i);
    worker_start start{name,
                       {"troupe", "worker", config, "--run-dir", run.path(), "--name", name,
                        "--lock-fd", fmt::format("{}", run.lock_fd()), "--resume", options.resume},
                       {},
                       join_path(run.file("logs"), name + ".log")};
    std::vector<std::string>& words = start.arguments;
    if (workers > 1 && s.compute.threads == 0) {
      words.insert(words.end(), {"--set", fmt::format("compute.threads={}",
                                                      shares[static_cast<std::size_t>(i)])});
    }
    if (!options.report.empty()) words.insert(words.end(), {"--report", options.report});
    if (options.quiet) words.emplace_back("--quiet");
    starts.push_back(std::move(start));
  }
  return starts;
}

// The run's port, and its address in the run directory; none where metrics.prometheus_listen is "".
result<std::unique_ptr<status_server>> open_status(const config::settings& s,
                                                   const run_directory& run, console& screen) {
  const std::string& listen = s.metrics.prometheus_listen;
  if (listen.empty()) return std::unique_ptr<status_server>();
  result<std::string> secret = read_file(real_file_system(), run.file("secret"), 4096);
  std::string word = secret ? *secret : "";
  word.erase(word.find_last_not_of("\r\n") + 1);
  auto server =
      status_server::start(listen, {.secret = word, .stop = [] { kill(getpid(), SIGTERM); }});
  if (!server) return server.failure();
  comm::address where = (*server)->address();
  if (where.host == "0.0.0.0" || where.host == "::") where.host = host_name();
  // A lone worker has no control lane; whoever takes this port for one learns it by the handshake.
  const run_address told{.run_id = run.run_id(),
                         .plan = generation(0),
                         .host = where.host,
                         .port = where.port,
                         .http_port = where.port};
  if (result<bool> published = publish_address(real_file_system(), run.path(), told); !published) {
    return published.failure();
  }
  screen.say(
      fmt::format("status at http://{}/ (also /metrics, /api/status, /healthz)", to_text(where)));
  return server;
}

// What belongs to the whole run cannot differ from worker to worker.
status check_member_keys(const std::vector<std::string>& sets) {
  for (const std::string& set : sets) {
    const config::option* o = config::find_option(set.substr(0, set.find('=')));
    if (o == nullptr || o->scope == config::scope::member) continue;  // load() knows unknown keys
    return error{exit_code::bad_config,
                 fmt::format("--set {}: {} belongs to the whole run and stands in its config; a "
                             "worker sets only keys of its own, such as compute.threads",
                             set, o->name)};
  }
  return done{};
}

}  // namespace

int train_command(arguments args, std::ostream& out, std::ostream& err) {
  const split_arguments split = take_overrides(args);
  command_line line(
      "train", "Trains a model on this machine, from start or from the newest whole checkpoint.",
      "  troupe train examples/quickstart.toml\n"
      "  troupe train run.toml --run-dir outputs/a --training.steps=2000 --resume never\n");
  common_options options;
  std::vector<std::string> sets;
  int workers = 1;
  bool dry_run = false, no_color = false;
  line.app().add_option("CONFIG", options.config, "config file (TOML)")->required();
  line.app()
      .add_option("--workers", workers, "local worker processes")
      ->check(CLI::Range(1, 1 << 20));
  line.app()
      .add_option("--set", sets, "section.key=value; --section.key=value works as well")
      ->allow_extra_args(false);
  line.app().add_option("--run-dir", options.run_dir, "run directory (job.run_dir)");
  line.app().add_option("--resume", options.resume, "auto, never, or a step");
  line.app().add_option("--report", options.report, "write report.json to this file as well");
  line.app().add_flag("--quiet", options.quiet, "errors only");
  line.app().add_flag("--no-color", no_color, "no colour (metrics.disable_color_printing)");
  line.app().add_flag("--dry-run", dry_run,
                      "check config and data, print the config, start nothing");
  if (const auto code = line.parse(split.rest, out, err)) return *code;
  if (const int code = check_resume(options, err); code != 0) return code;
  sets.insert(sets.end(), split.overrides.begin(), split.overrides.end());
  if (!options.run_dir.empty()) sets.push_back("job.run_dir=" + options.run_dir);
  if (!options.report.empty()) {
    const std::string folder = parent_path(options.report);
    if (access(folder.c_str(), W_OK) != 0) {
      return fail({exit_code::usage, fmt::format("--report {}: cannot write into {}: {}",
                                                 options.report, folder, std::strerror(errno))},
                  err);
    }
  }
  if (no_color) sets.emplace_back("metrics.disable_color_printing=true");
  if (workers > most_workers) {
    return fail({exit_code::bad_config,
                 fmt::format("--workers {}: more than one worker is not in this version", workers)},
                err);
  }

  result<config::loaded> loaded = config::load(
      {.file = options.config, .text = {}, .environment = environment(), .overrides = sets});
  if (!loaded) return fail(loaded.failure(), err);
  const config::settings& s = loaded->settings;
  if (status sound = model::check(description_from(s)); !sound) return fail(sound.failure(), err);
  if (status fits = check_memory(description_from(s), trainer_settings_from(s), memory_available());
      !fits) {
    return fail(fits.failure(), err);
  }
  if (dry_run) {
    result<model::data::dataset> data = model::data::dataset::open(training_data_from(s));
    if (!data) return fail(data.failure(), err);
    out << config::show_toml(s, loaded->origins);
    return 0;
  }

  result<run_directory> run = run_directory::claim(real_file_system(), s.job.run_dir, real_clock());
  if (!run) return fail(run.failure(), err);
  // The worker makes this the run's config.toml once it may go on with it.
  const std::string next_config = run->file("config.next.toml");
  if (status written = replace(real_file_system(), next_config, config::show_toml(s)); !written) {
    return fail(written.failure(), err);
  }
  out.flush();
  const int code = run_worker_processes(starts_of(options, s, *run, next_config, workers), {});
  (void)real_file_system().remove(next_config);  // the run's own config.toml says what was used
  return code;
}

int worker_command(arguments args, std::ostream& out, std::ostream& err) {
  command_line line("worker", "One worker of a run; `troupe train` starts it.",
                    "  troupe worker outputs/a/config.toml --run-dir outputs/a\n");
  common_options options;
  std::string name = "worker-0";
  std::vector<std::string> sets;
  int lock_fd = -1;
  line.app().add_option("CONFIG", options.config, "effective config of the run")->required();
  line.app().add_option("--run-dir", options.run_dir, "run directory")->required();
  line.app().add_option("--resume", options.resume, "auto, never, or a step");
  line.app().add_option("--report", options.report, "write report.json to this file as well");
  line.app().add_flag("--quiet", options.quiet, "errors only");
  line.app().add_option("--name", name, "its slot in the world, and the name of its log");
  line.app()
      .add_option("--set", sets, "KEY=VALUE, only keys that a member may have of its own")
      ->allow_extra_args(false);
  line.app().add_option("--lock-fd", lock_fd, "the launcher's open lock of the run directory");
  if (const auto code = line.parse(args, out, err)) return *code;
  if (const int code = check_resume(options, err); code != 0) return code;
  if (status own = check_member_keys(sets); !own) return fail(own.failure(), err);
  take_stop_signals();
  // The effective config says everything; environment variables were taken in by the launcher.
  result<config::loaded> loaded =
      config::load({.file = options.config, .text = {}, .environment = {}, .overrides = sets});
  if (!loaded) return fail(loaded.failure(), err);
  result<run_directory> run =
      run_directory::join(real_file_system(), options.run_dir, real_clock(), lock_fd);
  if (!run) return fail(run.failure(), err);
  console_settings shown =
      console_settings::detect(options.quiet, loaded->settings.metrics.disable_color_printing);
  shown.log_file = join_path(run->file("logs"), name + ".log");
  console screen(shown);
  result<std::unique_ptr<status_server>> seen = open_status(loaded->settings, *run, screen);
  if (!seen) return fail(seen.failure(), err);
  status_server* const server = seen->get();
  training_run training(*run, {loaded->settings, *parse_resume(options.resume), options.report},
                        {real_file_system(), real_clock(), screen, [] { return stop_signal(); },
                         [server](std::shared_ptr<const world_status> s) {
                           if (server != nullptr) server->publish(std::move(s));
                         }});
  return training.run();
}

}  // namespace troupe::actors::cli
