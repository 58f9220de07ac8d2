// `troupe chaos`: runs a scenario on real processes of this machine, compares with the undisturbed
// run and judges. docs/chaos.md describes scenarios and reports.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "actors/chaos/process_trial.hpp"
#include "actors/chaos/scenario_check.hpp"
#include "actors/chaos/scenario_reader.hpp"
#include "actors/chaos/undisturbed.hpp"
#include "actors/cli/chaos_verdict.hpp"
#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/train_under_faults.hpp"
#include "actors/from_settings.hpp"
#include "actors/machine.hpp"
#include "actors/stop_signals.hpp"
#include "actors/version.hpp"
#include "config/base/hash.hpp"
#include "config/load.hpp"
#include "config/print.hpp"
#include "model/data/dataset.hpp"

namespace troupe::actors::cli {
namespace {

using chaos::run_mode;
using chaos::scenario;

constexpr auto mode = run_mode::process;

struct prepared {
  chaos::trial_settings trial;
  std::string reference_key;
};

// Checks that need the config: a fault behind the last step never comes.
status fits_steps(const scenario& s, std::uint64_t steps) {
  const auto trouble = [&](const std::string& what) {
    return error{exit_code::bad_config,
                 fmt::format("{}: {}; training.steps is {}", s.file, what, steps)};
  };
  for (const chaos::fault& f : s.faults) {
    const auto* at = std::get_if<chaos::at_steps>(&f.when);
    if (at != nullptr && at->steps.front().first > steps) {
      return trouble(fmt::format("fault {} comes at step {}", f.id, at->steps.front().first));
    }
  }
  if (s.random && s.random->from_step > steps) {
    return trouble(fmt::format("random.from_step is {}", s.random->from_step));
  }
  if (s.quiet && s.quiet->at_step && *s.quiet->at_step + s.quiet->progress > steps + 1) {
    return trouble(fmt::format("quiet begins at step {} and wants {} more", *s.quiet->at_step,
                               s.quiet->progress));
  }
  return done{};
}

// The config as `train` will see it, checked, and what names its undisturbed run.
result<prepared> prepare(const scenario& s, const own_run* own) {
  prepared p;
  if (own != nullptr) {
    p.trial.config = own->config;
    p.trial.sets = own->sets;
    p.trial.more = own->words;
    p.trial.shown = true;
  } else {
    const bool absolute = s.config.starts_with('/');
    p.trial.config = absolute ? s.config : join_path(parent_path(s.file), s.config);
    for (const auto& [key, value] : s.sets) p.trial.sets.push_back(key + "=" + value);
  }
  p.trial.cores = usable_cores();
  p.trial.stop = [] { return stop_signal() != 0; };
  result<config::loaded> loaded = config::load({.file = p.trial.config,
                                                .text = {},
                                                .environment = environment(),
                                                .overrides = p.trial.sets});
  if (!loaded) return loaded.failure();
  const config::settings& c = loaded->settings;
  const auto steps = static_cast<std::uint64_t>(c.training.steps);
  if (status fits = fits_steps(s, steps); !fits) return fits.failure();
  result<model::data::dataset> data = model::data::dataset::open(training_data_from(c));
  if (!data) return data.failure();
  const result<hash128> digest = data->digest();
  if (!digest) return digest.failure();
  std::string decides = fmt::format("{}\n{}\n{}\n{}", config::show_toml(c), digest->hex(),
                                    s.members, version_details());
  // The undisturbed run has the same gradients that are no numbers.
  scenario no_numbers = s;
  std::erase_if(no_numbers.faults,
                [](const chaos::fault& f) { return f.kind != chaos::fault_kind::nan; });
  if (!no_numbers.faults.empty()) decides += "\n" + chaos::canonical_text(no_numbers);
  p.reference_key = hash_text(decides).hex();
  return p;
}

// A name that is free: outputs/chaos/NAME, NAME-2, ...
result<std::string> free_directory(file_system& files, const scenario& s) {
  const std::string wanted = "outputs/chaos/" + s.name;
  for (int i = 1; i < 100'000; ++i) {
    std::string name = i == 1 ? wanted : fmt::format("{}-{}", wanted, i);
    const result<bool> there = files.exists(name);
    if (!there) return there.failure();
    // Of several runs the first stands for all.
    const result<bool> seeds = files.exists(fmt::format("{}-seed-{}", name, s.seed));
    if (!seeds) return seeds.failure();
    if (!*there && !*seeds) return name;
  }
  return error{exit_code::cannot_use,
               fmt::format("{} and 100000 names after it are taken; remove old runs", wanted)};
}

class chaos_runs {
 public:
  chaos_runs(const scenario& s, prepared p, bool json, std::ostream& out, std::ostream& err)
      : s_(s), p_(std::move(p)), json_(json), out_(out), err_(err) {
    const time_since_start began = clock_.now();
    p_.trial.say = [this, began](const std::string& line) {
      const double now = std::chrono::duration<double>(clock_.now() - began).count();
      err_ << fmt::format("{:9.3f} s  {}\n", now, line) << std::flush;
    };
  }

  int run(const std::string& directory) {
    if (s_.reference == "auto") {
      chaos::trial_settings calm = p_.trial;
      calm.more.clear();
      calm.shown = false;
      calm.run_directory =
          join_path(parent_path(directory), "reference-" + p_.reference_key.substr(0, 16));
      reference_directory_ = calm.run_directory;
      if (status there = make_directories(files_, parent_path(directory)); !there) {
        return fail(there.failure(), err_);
      }
      result<chaos::reference_facts> kept = chaos::undisturbed_run(s_, calm, files_, clock_);
      if (!kept) return fail(kept.failure(), err_);
      reference_ = std::move(*kept);
    }
    for (std::uint64_t i = 0; i < s_.repeat; ++i) {
      const std::uint64_t seed = s_.seed + i;
      const std::string here =
          s_.repeat == 1 ? directory : fmt::format("{}-seed-{}", directory, seed);
      // The first seed that fails is kept; more would hide it.
      if (const int code = once(here, seed); code != 0) return code;
    }
    return 0;
  }

 private:
  int once(const std::string& directory, std::uint64_t seed) {
    const result<bool> there = files_.exists(join_path(directory, "run.json"));
    if (!there) return fail(there.failure(), err_);
    if (*there) {
      return fail(
          {exit_code::cannot_use,
           fmt::format("{} holds a run already, and a scenario needs a new one; say another "
                       "--run-dir",
                       directory)},
          err_);
    }
    chaos::trial_settings trial = p_.trial;
    trial.run_directory = directory;
    trial.say(fmt::format("{}: seed {}, {} members, in {}", s_.name, seed, s_.members, directory));
    const auto run = chaos::run_on_processes(s_, seed, trial, files_, clock_);
    if (!run) return fail(run.failure(), err_);
    // Somebody wants the user's run to stop: that is no matter of the scenario.
    if (trial.shown && run->facts.exit == static_cast<int>(exit_code::interrupted)) {
      return run->facts.exit;
    }
    const int code = tell_verdict(
        {s_, mode, seed, run->facts, reference_, directory, reference_directory_, run->last_words},
        json_, out_, err_);
    return code != 0 && trial.shown && run->facts.exit != 0 ? run->facts.exit : code;
  }

  const scenario& s_;
  prepared p_;
  bool json_;
  std::ostream& out_;
  std::ostream& err_;
  file_system& files_ = real_file_system();
  const clock_source& clock_ = real_clock();
  std::string reference_directory_;
  std::optional<chaos::reference_facts> reference_;
};

}  // namespace

int chaos_command(arguments args, std::ostream& out, std::ostream& err) {
  command_line line("chaos", "Runs a scenario of faults on real processes and judges it.",
                    "  troupe chaos examples/chaos/kill-a-worker.toml\n"
                    "  troupe chaos examples/chaos/churn.toml --run-dir outputs/churn --json\n");
  std::string path, directory;
  bool json = false;
  line.app().add_option("SCENARIO", path, "scenario file (TOML)")->required();
  line.app().add_option("--run-dir", directory, "run directory; outputs/chaos/NAME");
  line.app().add_flag("--json", json, "one JSON object a run instead of text");
  if (const auto code = line.parse(args, out, err)) return *code;
  const result<scenario> s = chaos::load_scenario(real_file_system(), path);
  if (!s) return fail(s.failure(), err);
  if (status sound = chaos::check_scenario(*s, mode); !sound) return fail(sound.failure(), err);
  result<prepared> p = prepare(*s, nullptr);
  if (!p) return fail(p.failure(), err);
  if (directory.empty()) {
    result<std::string> free = free_directory(real_file_system(), *s);
    if (!free) return fail(free.failure(), err);
    directory = *free;
  }
  take_stop_signals(false);
  return chaos_runs(*s, std::move(*p), json, out, err).run(directory);
}

int train_under_faults(const std::string& path, const own_run& own, std::ostream& out,
                       std::ostream& err) {
  result<scenario> s = chaos::load_scenario(real_file_system(), path);
  if (!s) return fail(s.failure(), err);
  if (status sound = chaos::check_scenario(*s, mode); !sound) return fail(sound.failure(), err);
  if (own.workers && *own.workers != static_cast<int>(s->members)) {
    return fail({exit_code::bad_config,
                 fmt::format("{} is a scenario of {} members, but --workers says {}: leave it out, "
                             "or change cluster.members",
                             path, s->members, *own.workers)},
                err);
  }
  if (s->repeat != 1) {
    return fail({exit_code::bad_config,
                 fmt::format("{} wants {} runs, and one's own run is one: set repeat = 1, or take "
                             "troupe chaos",
                             path, s->repeat)},
                err);
  }
  // An undisturbed twin takes as long as the run itself: only for who asks for it by name.
  if (!s->reference_given) s->reference = "none";
  result<prepared> p = prepare(*s, &own);
  if (!p) return fail(p.failure(), err);
  take_stop_signals(false);
  return chaos_runs(*s, std::move(*p), false, out, err).run(own.directory);
}

}  // namespace troupe::actors::cli
