// `troupe train`: the launcher. Checks the config, claims the run directory and starts the worker
// processes, which are this program again with the hidden word `worker`; they inherit the effective
// config as a file in memory.

#include <fmt/format.h>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ostream>

#include "actors/chaos/link_rules.hpp"
#include "actors/chaos/worker_faults.hpp"
#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/train_under_faults.hpp"
#include "actors/cli/worker_wish.hpp"
#include "actors/directory_probe.hpp"
#include "actors/from_settings.hpp"
#include "actors/launcher.hpp"
#include "actors/machine.hpp"
#include "actors/memory_check.hpp"
#include "actors/plan_chain.hpp"
#include "actors/run_address.hpp"
#include "actors/status_port.hpp"
#include "actors/stop_signals.hpp"
#include "actors/training_run.hpp"
#include "comm/filtered_transport.hpp"
#include "comm/secret.hpp"
#include "comm/ucx_transport.hpp"
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

// What a killed launcher has left saves and ends within this time, as a rule.
constexpr std::chrono::seconds wait_for_lock{5};

// The page that asks is served by one thread.
constexpr std::chrono::seconds launcher_patience{2};

struct common_options {
  std::string config, run_dir, resume = "auto", report;
  std::string orders;  // a folder: workers take orders there to do harm to themselves; "": none
  bool quiet = false;
};

int check_resume(const common_options& options, std::ostream& err) {
  if (parse_resume(options.resume)) return 0;
  err << "troupe: --resume takes auto, never or a step, not \"" << options.resume << "\"\n";
  return static_cast<int>(exit_code::usage);
}

// One worker a process, and every worker its share of the cores unless the config says a number.
// `world`: 0 for one that comes to a world that is there.
worker_start start_of(const common_options& options, const config::settings& s,
                      const run_directory& run, const std::string& config, std::size_t slot,
                      int workers, int world) {
  const std::string name = name_of_slot(static_cast<std::uint32_t>(slot));
  worker_start start{name,
                     {"troupe", "worker", config, "--run-dir", run.path(), "--name", name,
                      "--lock-fd", fmt::format("{}", run.lock_fd()), "--resume", options.resume},
                     {},
                     join_path(run.file("logs"), name + ".log"),
                     {"--join"}};
  std::vector<std::string>& words = start.arguments;
  if (world > 0) words.insert(words.end(), {"--world", fmt::format("{}", world)});
  if (workers > 1 && s.compute.threads == 0) {
    const int threads = share_cores(usable_cores(), workers)[slot];
    words.insert(words.end(), {"--set", fmt::format("compute.threads={}", threads)});
  }
  if (!options.report.empty()) words.insert(words.end(), {"--report", options.report});
  if (options.quiet) words.emplace_back("--quiet");
  if (!options.orders.empty()) words.insert(words.end(), {"--orders", options.orders});
  return start;
}

// Higher than that of any process before in the same slot, whoever started that.
incarnation new_life() {
  return incarnation(static_cast<std::uint64_t>(real_clock().wall().time_since_epoch().count()));
}

launcher_hooks hooks_of(const config::settings& s, const run_directory& run) {
  const auto& f = s.fault_tolerance;
  const auto time = [](double seconds) {
    return std::chrono::duration_cast<time_since_start>(std::chrono::duration<double>(seconds));
  };
  launcher_hooks hooks;
  hooks.patience.to_finish = hooks.patience.to_leave = time(f.drain_grace_seconds);
  hooks.restarts.limit = static_cast<int>(f.max_restarts);
  hooks.restarts.window = time(f.restart_window_seconds);
  hooks.next_life = [last = incarnation(0)]() mutable {
    return last = std::max(new_life(), incarnation(last.value + 1));
  };
  hooks.newest_plan = [&run]() -> std::optional<std::vector<life_in_plan>> {
    const auto plans = read_plans(real_file_system(), run.path(), run.run_id());
    if (!plans) return std::nullopt;
    std::vector<life_in_plan> lives;
    if (plans->empty()) return lives;
    const protocol::plan& newest = plans->back().plan;
    for (const auto& m : newest.members) {
      lives.push_back({m.name, m.life, m.id == newest.coordinator});
    }
    return lives;
  };
  return hooks;
}

// The run's port, for when this process coordinates; none where metrics.prometheus_listen is "".
status_port_settings port_settings(const config::settings& s, const run_directory& run,
                                   console& screen) {
  result<std::string> secret = read_file(real_file_system(), run.file("secret"), 4096);
  std::string word = secret ? *secret : "";
  word.erase(word.find_last_not_of("\r\n") + 1);
  return {.listen = s.metrics.prometheus_listen,
          .hooks = {.secret = word,
                    .stop = [] { kill(getpid(), SIGTERM); },
                    .order =
                        [run_id = run.run_id()](const std::string& words) {
                          return ask_launcher(run_id, words, launcher_patience);
                        }},
          .told = [&screen](comm::address where) {
            if (where.host == "0.0.0.0" || where.host == "::") where.host = host_name();
            screen.say(fmt::format("status at http://{}/ (also /metrics, /api/status, /healthz)",
                                   to_text(where)));
          }};
}

// A file in memory for the workers, which inherit it: the effective config of this start, which may
// still be refused, so it has no name in the run directory; nothing is left of it whoever is
// killed.
result<std::string> unnamed_file(const std::string& content) {
  const int fd = memfd_create("config.toml", 0);
  if (fd < 0 || write(fd, content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
    return error{exit_code::io,
                 fmt::format("cannot keep {} bytes of config in memory for the workers: {}",
                             content.size(), std::strerror(errno))};
  }
  return fmt::format("/proc/self/fd/{}", fd);
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
  std::string scenario;
  bool dry_run = false, no_color = false;
  line.app().add_option("CONFIG", options.config, "config file (TOML)")->required();
  const CLI::Option* workers_given = line.app()
                                         .add_option("--workers", workers, "local worker processes")
                                         ->check(CLI::Range(1, 1 << 20));
  line.app().add_option("--chaos", scenario,
                        "a scenario (TOML) whose faults happen to this run; docs/chaos.md");
  line.app()
      .add_option("--set", sets, "section.key=value; --section.key=value works as well")
      ->allow_extra_args(false);
  line.app().add_option("--run-dir", options.run_dir, "run directory (job.run_dir)");
  line.app().add_option("--resume", options.resume, "auto, never, or a step");
  line.app().add_option("--report", options.report, "write report.json to this file as well");
  line.app().add_flag("--quiet", options.quiet, "errors only");
  line.app().add_option("--orders", options.orders)->group("");  // of chaos
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

  if (!scenario.empty()) {
    own_run own{options.config, sets, {}, s.job.run_dir, std::nullopt};
    if (*workers_given) own.workers = workers;
    if (options.resume != "auto") own.words.insert(own.words.end(), {"--resume", options.resume});
    if (!options.report.empty()) own.words.insert(own.words.end(), {"--report", options.report});
    if (options.quiet) own.words.emplace_back("--quiet");
    return train_under_faults(scenario, own, out, err);
  }
  result<run_directory> run = run_directory::claim(
      real_file_system(), s.job.run_dir, real_clock(),
      {.limit = wait_for_lock,
       .say = [&](const std::string& words) { err << "troupe: " << words << std::endl; }});
  if (!run) return fail(run.failure(), err);
  result<std::string> config = unnamed_file(config::show_toml(s));
  if (!config) return fail(config.failure(), err);
  if (result<comm::secret> key = comm::create_secret(real_file_system(), run->file("secret"));
      !key) {
    return fail(key.failure(), err);
  }
  // An address of an earlier start would only send this one's workers astray.
  if (status removed = remove_all(real_file_system(), run->file("address")); !removed) {
    return fail(removed.failure(), err);
  }
  out.flush();
  launcher_hooks hooks = hooks_of(s, *run);
  const result<command_box> commands = command_box::open(run->run_id());
  if (commands) hooks.commands = &*commands;
  if (!commands) err << "troupe: " << commands.failure().message << std::endl;
  hooks.limits.min_members = static_cast<std::uint64_t>(s.elastic.min_members);
  if (s.elastic.max_members > 0) {
    hooks.limits.max_members = static_cast<std::uint64_t>(s.elastic.max_members);
  }
  hooks.one_more = [&](std::size_t slot, std::uint64_t all) {
    return start_of(options, s, *run, *config, slot, static_cast<int>(all), 0);
  };
  std::vector<worker_start> starts;
  for (int i = 0; i < workers; ++i) {
    starts.push_back(
        start_of(options, s, *run, *config, static_cast<std::size_t>(i), workers, workers));
  }
  const int code = run_worker_processes(starts, hooks);
  (void)remove_probes(real_file_system(), run->path());  // of a start that came to nothing
  return code;
}

int worker_command(arguments args, std::ostream& out, std::ostream& err) {
  command_line line("worker",
                    "One worker of a run. `troupe train` starts it; by hand it is one more member "
                    "of the run that is under way on its directory.",
                    "  troupe worker outputs/a/config.toml --run-dir outputs/a\n"
                    "  troupe worker outputs/a/config.toml --run-dir outputs/a --name worker-4\n");
  common_options options;
  worker_wish wish;
  std::vector<std::string> sets;
  line.app().add_option("CONFIG", options.config, "effective config of the run")->required();
  line.app().add_option("--run-dir", options.run_dir, "run directory")->required();
  line.app().add_option("--resume", options.resume, "auto, never, or a step");
  line.app().add_option("--report", options.report, "write report.json to this file as well");
  line.app().add_flag("--quiet", options.quiet, "errors only");
  line.app().add_option("--orders", options.orders)->group("");  // of chaos
  line.app().add_option("--name", wish.name,
                        "its slot in the world, and the name of its log; worker-0, or the lowest "
                        "slot that is free in a world that it joins");
  line.app()
      .add_option("--set", sets, "KEY=VALUE, only keys that a member may have of its own")
      ->allow_extra_args(false);
  line.app()
      .add_option("--world", wish.world, "members that start together; the slot must be below")
      ->check(CLI::Range(1, 1 << 20));
  line.app().add_flag("--join", wish.joins, "enter a world that is there, never begin one");
  std::uint64_t life = 0;
  line.app().add_option("--life", life, "its number in its slot, higher than any before");
  line.app().add_option("--lock-fd", wish.lock_fd, "the launcher's open lock of the run directory");
  int orders_fd = -1;
  line.app().add_option("--orders-fd", orders_fd, "the launcher's line to this worker");
  if (const auto code = line.parse(args, out, err)) return *code;
  if (const int code = check_resume(options, err); code != 0) return code;
  if (status own = check_member_keys(sets); !own) return fail(own.failure(), err);
  if (status sound = wish.check(); !sound) return fail(sound.failure(), err);
  take_stop_signals(wish.lock_fd >= 0);
  // The effective config says everything; environment variables were taken in by the launcher.
  result<config::loaded> loaded =
      config::load({.file = options.config, .text = {}, .environment = {}, .overrides = sets});
  if (!loaded) return fail(loaded.failure(), err);
  result<run_directory> run = wish.enter(real_file_system(), options.run_dir, real_clock());
  if (!run) return fail(run.failure(), err);
  result<place_in_world> place = wish.place_in(real_file_system(), *run);
  if (!place) return fail(place.failure(), err);
  place->life = life > 0 ? incarnation(life) : new_life();
  console_settings shown =
      console_settings::detect(options.quiet, loaded->settings.metrics.disable_color_printing);
  shown.log_file = join_path(run->file("logs"), place->name + ".log");
  console screen(shown);
  status_port port(port_settings(loaded->settings, *run, screen));
  const auto& c = loaded->settings.comm;
  result<comm::secret> key = c.secret_file.empty()
                                 ? comm::create_secret(real_file_system(), run->file("secret"))
                                 : comm::read_secret(real_file_system(), c.secret_file);
  if (!key) return fail(key.failure(), err);
  result<std::unique_ptr<comm::ucx_transport>> transport = comm::ucx_transport::open(
      {.listen = c.listen, .advertise = c.advertise, .interfaces = c.interfaces});
  if (!transport) return fail(transport.failure(), err);
  launcher_line orders(orders_fd, real_clock());
  std::unique_ptr<comm::transport> way = std::move(*transport);
  std::optional<chaos::worker_faults> faults;
  if (!options.orders.empty()) {
    auto inbox =
        chaos::order_inbox::open(real_file_system(), options.orders, place->name, place->life);
    if (!inbox) return fail(inbox.failure(), err);
    auto filter = std::make_unique<comm::filtered_transport>(
        std::move(way),
        comm::filter_settings{[] { return real_clock().now(); }, chaos::name_of_message});
    faults.emplace(std::move(*inbox), real_clock(), filter->faults());
    way = std::move(filter);
  }
  training_run training(*run,
                        {loaded->settings, *parse_resume(options.resume), options.report, *place},
                        {.files = real_file_system(),
                         .clock = real_clock(),
                         .screen = screen,
                         .stop_signal = [](std::uint64_t) { return stop_signal(); },
                         .stop_means_the_run = [] { return stop_means_the_run(); },
                         .launcher_says = [&orders] { return orders.next(); },
                         .port = &port,
                         .transport = way.get(),
                         .secret = *key,
                         .faults = faults ? &*faults : nullptr});
  return training.run();
}

}  // namespace troupe::actors::cli
