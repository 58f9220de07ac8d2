#include "actors/chaos/process_trial.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "actors/chaos/run_watcher.hpp"
#include "actors/chaos/schedule.hpp"
#include "config/base/json.hpp"

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;

constexpr int look_every_ms = 5;
// After the launcher's end: for workers that joined, or that lost their launcher.
constexpr duration to_leave = 10s;
constexpr std::size_t last_lines = 6;

std::string name_of_member(const protocol::plan& p, member_id m) {
  const protocol::plan_member* found = p.find(m);
  return found != nullptr ? found->name : fmt::format("worker-{}", m.value);
}

std::string tail(const std::string& text) {
  std::size_t at = text.size();
  for (std::size_t i = 0; i <= last_lines && at != std::string::npos && at > 0; ++i) {
    at = text.rfind('\n', at - 1);
  }
  return at == std::string::npos || at == 0 ? text : text.substr(at + 1);
}

class trial {
 public:
  trial(const scenario& s, std::uint64_t seed, const trial_settings& settings, file_system& files,
        const clock_source& clock, output_file output)
      : s_(s),
        settings_(settings),
        files_(files),
        clock_(clock),
        output_(std::move(output)),
        schedule_(s, run_mode::process, seed),
        watcher_(files, settings.run_directory),
        injector_({settings.program, settings.run_directory, s.members, settings.cores,
                   join_path(settings.run_directory, "chaos"), seed},
                  output_.fd()) {}

  result<trial_outcome> run() {
    facts_.started = clock_.now();
    facts_.members = s_.members;
    const int output = settings_.shown ? STDOUT_FILENO : output_.fd();
    result<held_process> launcher = start_program(settings_.program, words(), output);
    if (!launcher) return launcher.failure();
    launcher_ = std::move(*launcher);
    while (!launcher_.ended()) {
      turn();
      if (!settings_.shown && clock_.now() - facts_.started > s_.guard) {
        facts_.guard_struck = true;
        say(fmt::format("the guard of {} ends the run", to_text(s_.guard)));
        break;
      }
      if (settings_.shown && settings_.stop && settings_.stop()) {
        if (!std::exchange(told_to_stop_, true)) launcher_.send(SIGTERM);
      } else if (settings_.stop && settings_.stop()) {
        kill_everything();
        (void)launcher_.reap();
        return error{exit_code::interrupted,
                     fmt::format("told to stop: the run in {} was ended and is not judged",
                                 settings_.run_directory)};
      }
      wait();
    }
    return ended();
  }

 private:
  std::vector<std::string> words() const {
    std::vector<std::string> all = {"troupe",
                                    "train",
                                    settings_.config,
                                    "--workers",
                                    fmt::format("{}", s_.members),
                                    "--run-dir",
                                    settings_.run_directory};
    // The undisturbed run is an ordinary one.
    if (!s_.faults.empty() || s_.random) {
      all.insert(all.end(), {"--orders", join_path(settings_.run_directory, "chaos")});
    }
    all.insert(all.end(), settings_.more.begin(), settings_.more.end());
    for (const std::string& set : settings_.sets) all.insert(all.end(), {"--set", set});
    return all;
  }

  static void wait() {
    pollfd nothing{-1, 0, 0};
    (void)poll(&nothing, 0, look_every_ms);
  }

  void kill_everything() {
    injector_.find_workers(children_of(launcher_.id()));
    launcher_.send(SIGKILL);  // first: it would start others in place of those who are lost
    injector_.heal(clock_.now());
    injector_.kill_all();
  }

  void say(const std::string& line) const {
    if (settings_.say) settings_.say(line);
  }

  // For whoever reads the run's own records: one line a fault, as soon as there is proof.
  void record(const injected_fault& f) {
    const auto seconds = [&](duration d) {
      return std::chrono::duration<double>(d - facts_.started).count();
    };
    json_line line;
    line.text("fault", f.what.which.fault)
        .u64("number", f.what.which.number)
        .text("kind", name_of(f.what.kind))
        .texts("members", f.names)
        .u64("step", f.what.step)
        .number("at", seconds(f.at))
        .boolean("happened", f.proven.has_value())
        .text("proof", f.proof);
    const std::string text = line.finish();
    const std::string folder = join_path(settings_.run_directory, "chaos");
    auto log = files_.open(join_path(folder, "faults.jsonl"), open_mode::append);
    // Without it chaos.json still tells everything at the end.
    if (log) (void)(*log)->append(std::as_bytes(std::span(text.data(), text.size())));
  }

  void turn() {
    const duration now = clock_.now();
    injector_.find_workers(children_of(launcher_.id()));
    for (const happening& h : watcher_.look(now)) tell(h, now);
    if (!watcher_.has_plan()) return;
    const world_view world = world_now();
    std::set<std::string> planned;
    for (const protocol::plan_member& m : world.plan.members) planned.insert(m.name);
    for (const happening& h : injector_.look(now, planned)) {
      if (const auto* began = std::get_if<fault_began>(&h)) say_of(began->which, "happened");
      if (const auto* failed = std::get_if<fault_failed>(&h)) say_of(failed->which, "failed");
      tell(h, now);
    }
    tell(time_passed{}, now);
    for (const armed_struck& s : injector_.desk().take_struck()) tell(s, now);
    injector_.desk().arm(schedule_.to_arm(world_now()));
  }

  void say_of(const occurrence& which, const char* what) {
    for (const injected_fault& f : injector_.faults()) {
      if (f.what.which != which) continue;
      say(fmt::format("{} {}: {}", which.fault, what, f.proof));
      record(f);
    }
  }

  world_view world_now() {
    world_view world;
    watcher_.fill(world);
    injector_.desk().know(world.plan);
    world.domains = s_.domains;
    const std::set<std::string> running = injector_.running();
    for (const protocol::plan_member& m : world.plan.members) {
      if (running.contains(m.name)) world.alive.insert(m.id);
    }
    for (const auto& f : injector_.faults()) {
      if (f.what.kind != fault_kind::join) continue;
      for (const protocol::plan_member& m : world.plan.members) {
        if (m.name == f.names.front()) world.joiner = m.id;
      }
    }
    const auto count = static_cast<std::uint32_t>(world.alive.size());
    if (facts_.populations.empty() || facts_.populations.back().running != count) {
      // Who starts together is there from the start.
      const duration from = facts_.populations.empty() ? facts_.started : clock_.now();
      facts_.populations.push_back({from, count});
    }
    return world;
  }

  void tell(const happening& what, duration now) {
    if (!watcher_.has_plan()) return;
    const world_view world = world_now();
    const orders o = schedule_.tell(what, now, world);
    for (const ending& e : o.end) {
      injector_.end(e.which, now);
      say(fmt::format("{} of {} ends", name_of(e.kind), e.which.fault));
    }
    if (o.quiet_begins) {
      facts_.quiet_at = now;
      facts_.steps_before_quiet = watcher_.steps();
      say("quiet: nothing more goes wrong");
    }
    for (const injection& i : o.begin) {
      if (i.struck) {
        injector_.record(i, now);
        say(fmt::format("{}: {} ({})", i.which.fault, name_of(i.kind), i.why));
        say_of(i.which, "happened");
        tell(fault_began{i.which}, now);
        continue;
      }
      std::vector<std::string> names;
      for (const member_id m : i.whom.members) names.push_back(name_of_member(world.plan, m));
      std::string who;
      for (const std::string& n : names) who += " " + n;
      say(fmt::format("{}: {}{} ({})", i.which.fault, name_of(i.kind), who, i.why));
      injector_.begin(i, names, now);
    }
    for (const refusal& r : o.refused) {
      say(fmt::format("{} is refused: {}", r.fault, r.why));
      facts_.refused.push_back(r);
    }
  }

  result<trial_outcome> ended() {
    if (facts_.guard_struck) kill_everything();
    facts_.exit = launcher_.reap();
    facts_.ended = clock_.now();
    injector_.heal(facts_.ended);
    while (!injector_.running().empty() && !facts_.guard_struck &&
           clock_.now() - facts_.ended < to_leave) {
      wait();
    }
    (void)watcher_.look(facts_.ended);
    if (watcher_.has_plan()) {
      const world_view world = world_now();
      std::set<std::string> planned;
      for (const protocol::plan_member& m : world.plan.members) planned.insert(m.name);
      (void)injector_.look(facts_.ended, planned);
    }
    look_for_leftovers();
    facts_.faults = injector_.faults();
    watcher_.finish(facts_);
    keep_output();
    return trial_outcome{std::move(facts_), tail(output_.text())};
  }

  void look_for_leftovers() {
    for (const std::string& name : injector_.running()) {
      if (!facts_.guard_struck) facts_.left_behind.push_back("process of " + name);
    }
    injector_.kill_all();
    unfinished_files(settings_.run_directory);
  }

  void unfinished_files(const std::string& folder) {
    const auto entries = files_.list(folder);
    if (!entries) return;
    for (const directory_entry& e : *entries) {
      const std::string path = join_path(folder, e.name);
      const bool unfinished = e.name.find(temporary_mark) != std::string::npos ||
                              e.name.starts_with("probe-") || e.name.starts_with("config.next");
      if (unfinished) facts_.left_behind.push_back(path);
      if (e.is_directory) unfinished_files(path);
    }
  }

  // Beside the workers' logs, if the run has come so far.
  void keep_output() {
    if (settings_.shown) return;
    const std::string logs = join_path(settings_.run_directory, "logs");
    const auto there = files_.exists(logs);
    if (there && *there) (void)replace(files_, join_path(logs, "launcher.log"), output_.text());
  }

  const scenario& s_;
  const trial_settings& settings_;
  file_system& files_;
  const clock_source& clock_;
  output_file output_;
  adopts_orphans adopts_;
  held_process launcher_;
  schedule schedule_;
  run_watcher watcher_;
  process_injector injector_;
  run_facts facts_;
  bool told_to_stop_ = false;
};

}  // namespace

result<trial_outcome> run_on_processes(const scenario& s, std::uint64_t seed,
                                       const trial_settings& settings, file_system& files,
                                       const clock_source& clock) {
  result<output_file> output = output_file::make();
  if (!output) return output.failure();
  return trial(s, seed, settings, files, clock, std::move(*output)).run();
}

}  // namespace troupe::actors::chaos
