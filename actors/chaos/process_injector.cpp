#include "actors/chaos/process_injector.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;

constexpr duration until_hopeless = 10s, until_joined = 60s;

bool by_order(fault_kind kind) {
  return takes_orders(kind) && kind != fault_kind::kill && kind != fault_kind::stop;
}

int signal_named(const std::string& name) {
  struct known {
    std::string_view name;
    int number;
  };
  constexpr std::array all = {known{"TERM", SIGTERM}, known{"INT", SIGINT}, known{"USR1", SIGUSR1},
                              known{"USR2", SIGUSR2}, known{"HUP", SIGHUP}};
  const auto found = std::ranges::find(all, name, &known::name);
  return found == all.end() ? SIGTERM : found->number;
}

std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
  return all;
}

}  // namespace

process_injector::~process_injector() {
  for (deed& d : deeds_) undo(d);
  for (auto& [name, p] : joiners_) {
    p.send(SIGKILL);
    (void)p.reap();
  }
}

void process_injector::find_workers(const std::vector<int>& candidates) {
  for (const int id : candidates) {
    const bool known = std::ranges::any_of(
        workers_, [&](const auto& w) { return w.second.id() == id && !w.second.ended(); });
    if (known) continue;
    const auto name = worker_name(id);
    if (!name || joiners_.contains(*name)) continue;
    if (auto held = held_process::hold(id)) {
      stopped_.erase(*name);
      workers_.insert_or_assign(*name, std::move(*held));
    }
  }
}

const held_process* process_injector::process_of(const std::string& name) const {
  for (const auto* all : {&workers_, &joiners_}) {
    const auto found = all->find(name);
    if (found != all->end() && !found->second.ended()) return &found->second;
  }
  return nullptr;
}

std::set<std::string> process_injector::running() const {
  std::set<std::string> all;
  for (const auto* some : {&workers_, &joiners_}) {
    for (const auto& [name, p] : *some) {
      if (!p.ended() && !stopped_.contains(name)) all.insert(name);
    }
  }
  return all;
}

void process_injector::begin(const injection& what, const std::vector<std::string>& names,
                             duration now) {
  faults_.push_back({what, names, now, {}, "", {}});
  deed d;
  d.index = faults_.size() - 1;
  d.names = names;
  d.lasts = row_of(what.kind).lasts;
  for (const std::string& name : names) {
    const held_process* p = process_of(name);
    auto held = p != nullptr ? held_process::hold(p->id()) : std::nullopt;
    // Still there after its number was taken once more: so it is the same one.
    if (held && !p->ended()) d.struck.push_back(std::move(*held));
  }
  strike(d, what, now);
  deeds_.push_back(std::move(d));
}

void process_injector::record(const injection& what, duration now) {
  const auto shown = desk_.shown(what.which);
  ensure(!shown.empty(), "a fault was recorded that no worker has proven");
  deed d;
  for (const order_desk::shown_order& one : shown) {
    d.orders.push_back(one.id);
    d.names.push_back(one.name);
  }
  faults_.push_back(
      {what, d.names, shown.front().first.moment, now, shown.front().first.words, {}});
  d.index = faults_.size() - 1;
  d.lasts = row_of(what.kind).lasts;
  d.waits_for_proof = false;
  for (const std::string& name : d.names) {
    if (const held_process* p = process_of(name)) {
      if (auto held = held_process::hold(p->id())) d.struck.push_back(std::move(*held));
    }
    if (what.kind == fault_kind::stop) stopped_.insert(name);
  }
  deeds_.push_back(std::move(d));
}

void process_injector::strike(deed& d, const injection& what, duration now) {
  const auto send = [&](int signal) {
    for (const held_process& p : d.struck) p.send(signal);
  };
  switch (what.kind) {
    case fault_kind::kill:
      return send(SIGKILL);
    case fault_kind::stop:
      stopped_.insert(d.names.begin(), d.names.end());
      return send(SIGSTOP);
    case fault_kind::notice: {
      const auto signal = what.params.find("signal");
      const auto grace = what.params.find("grace");
      if (grace != what.params.end()) d.kill_at = now + std::get<duration>(grace->second);
      return send(signal == what.params.end()
                      ? SIGTERM
                      : signal_named(std::get<std::string>(signal->second)));
    }
    case fault_kind::cpu_steal: {
      const auto threads = what.params.find("threads");
      const std::int64_t wanted =
          threads == what.params.end() ? settings_.cores : std::get<std::int64_t>(threads->second);
      for (std::int64_t i = 0; i < wanted; ++i) {
        if (auto child = start_busy_child()) d.busy.push_back(std::move(*child));
      }
      return;
    }
    case fault_kind::join:
      return join(d);
    case fault_kind::drain:
      return drain(d);
    default: {
      ensure(by_order(what.kind), "a fault that this mode cannot do was ordered");
      // In steps it lasts until the schedule says so.
      const auto lasts =
          what.until ? std::optional<duration>(*what.until - now) : std::optional<duration>();
      d.orders = desk_.give(what, what.whom, std::nullopt, lasts);
      return;
    }
  }
}

void process_injector::join(deed& d) {
  const std::string name = fmt::format("worker-{}", settings_.members + joined_++);
  d.names = {name};
  faults_[d.index].names = d.names;
  const std::string config = settings_.run_directory + "/config.toml";
  std::vector<std::string> words = {
      "troupe", "worker", config, "--run-dir", settings_.run_directory, "--name", name, "--join"};
  if (!settings_.orders.empty()) words.insert(words.end(), {"--orders", settings_.orders});
  if (auto child = start_program(settings_.program, words, output_)) {
    joiners_.insert_or_assign(name, std::move(*child));
  }
}

void process_injector::drain(deed& d) {
  for (const std::string& name : d.names) {
    if (auto child = start_program(settings_.program,
                                   {"troupe", "drain", name, settings_.run_directory}, output_)) {
      d.commands.push_back(std::move(*child));
    }
  }
}

// Its exit code is its launcher's to see, who says so.
bool process_injector::has_left(const deed& d, const std::set<std::string>& planned) const {
  const std::string said = text_in(output_);
  for (std::size_t i = 0; i < d.struck.size(); ++i) {
    if (!d.struck[i].ended() || planned.contains(d.names[i])) return false;
    const std::string words = fmt::format("{} (process {}) has left", d.names[i], d.struck[i].id());
    if (said.find(words) == std::string::npos) return false;
  }
  return d.struck.size() == d.names.size();
}

// "" while there is none.
std::string process_injector::proof_of(const deed& d, const std::set<std::string>& planned) const {
  const injected_fault& f = faults_[d.index];
  const auto all = [&](const auto& shown) {
    return !d.struck.empty() && std::ranges::all_of(d.struck, shown);
  };
  switch (f.what.kind) {
    case fault_kind::kill:
      return all(&held_process::ended) ? fmt::format("{} is gone", listed(d.names)) : "";
    case fault_kind::stop: {
      const auto stopped = [](const held_process& p) {
        const auto look = look_at(p.id());
        return look && look->state == 'T' && !p.ended();
      };
      return all(stopped) ? fmt::format("{} stands still (state T)", listed(d.names)) : "";
    }
    case fault_kind::notice:
      return d.struck.empty() ? "" : fmt::format("{} has the signal", listed(d.names));
    case fault_kind::cpu_steal: {
      double used = 0;
      for (const held_process& child : d.busy) {
        const auto look = look_at(child.id());
        used += look ? look->cpu_seconds : 0;
      }
      return used > 0 ? fmt::format("{} busy processes use time", d.busy.size()) : "";
    }
    case fault_kind::join:
      return planned.contains(d.names.front())
                 ? fmt::format("{} stands in the plan", d.names.front())
                 : "";
    case fault_kind::exit:
      return all(&held_process::ended) ? desk_.proven(d.orders, f.what.kind) : "";
    case fault_kind::drain:
      return has_left(d, planned)
                 ? fmt::format("{} ended with 0 and stands in no plan", listed(d.names))
                 : "";
    default:
      return desk_.proven(d.orders, f.what.kind);
  }
}

// Why there will be no proof any more; "" while there may be.
std::string process_injector::hopeless(const deed& d, duration now) const {
  const injected_fault& f = faults_[d.index];
  const bool joins = f.what.kind == fault_kind::join;
  if (joins && process_of(d.names.front()) == nullptr) {
    return fmt::format("{} ended before it stood in the plan", d.names.front());
  }
  if (f.what.kind == fault_kind::stop && std::ranges::all_of(d.struck, &held_process::ended)) {
    return fmt::format("{} ended before it stood still", listed(d.names));
  }
  if (!d.orders.empty()) {
    if (std::string why = desk_.refused(d.orders); !why.empty()) return why;
    if (!d.struck.empty() && std::ranges::all_of(d.struck, &held_process::ended) &&
        desk_.proven(d.orders, f.what.kind).empty()) {
      return fmt::format("{} ended before it came to it", listed(d.names));
    }
  }
  const bool slow = joins || f.what.kind == fault_kind::drain;  // copies are made first
  const duration patience = slow ? until_joined : until_hopeless;
  if (now < f.at + patience) return "";
  return fmt::format("there was no sign of it within {}", to_text(patience));
}

std::vector<happening> process_injector::look(duration now, const std::set<std::string>& planned) {
  std::vector<happening> news;
  desk_.take_proofs();
  for (deed& d : deeds_) {
    injected_fault& f = faults_[d.index];
    if (d.waits_for_proof) {
      if (const std::string proof = proof_of(d, planned); !proof.empty()) {
        f.proven = now;
        f.proof = proof;
        d.waits_for_proof = false;
        if (f.what.kind == fault_kind::drain) undo(d);  // its command has ended
        news.emplace_back(fault_began{f.what.which});
      } else if (const std::string why = hopeless(d, now); !why.empty()) {
        f.proof = why;
        d.waits_for_proof = false;
        undo(d);
        news.emplace_back(fault_failed{f.what.which});
      }
    }
    if (d.kill_at && now >= *d.kill_at) {
      d.kill_at.reset();
      bool late = false;
      for (const held_process& p : d.struck) late = (!p.ended() && p.send(SIGKILL)) || late;
      f.proof += late ? "; killed after its grace" : "; gone before its grace was over";
    }
    // Who was stopped may be killed meanwhile, by the scenario or by the launcher.
    if (d.lasts && !f.over && f.what.kind == fault_kind::stop &&
        std::ranges::all_of(d.struck, &held_process::ended)) {
      f.over = now;
      for (const std::string& name : d.names) stopped_.erase(name);
      news.emplace_back(fault_over{f.what.which});
    }
  }
  return news;
}

void process_injector::undo(deed& d) {
  if (faults_[d.index].what.kind == fault_kind::stop) {
    for (const std::string& name : d.names) stopped_.erase(name);
    for (const held_process& p : d.struck) p.send(SIGCONT);
  }
  desk_.end(d.orders);
  for (const held_process& child : d.busy) {
    child.send(SIGKILL);
    (void)child.reap();
  }
  d.busy.clear();
  for (const held_process& command : d.commands) {
    command.send(SIGKILL);
    (void)command.reap();
  }
  d.commands.clear();
}

void process_injector::end(const occurrence& which, duration now) {
  for (deed& d : deeds_) {
    injected_fault& f = faults_[d.index];
    if (f.what.which != which || f.over) continue;
    undo(d);
    f.over = now;
  }
}

void process_injector::heal(duration now) {
  desk_.arm({});
  for (deed& d : deeds_) {
    if (d.lasts && !faults_[d.index].over) end(faults_[d.index].what.which, now);
  }
}

void process_injector::kill_all() {
  for (const auto* all : {&workers_, &joiners_}) {
    for (const auto& [name, p] : *all) p.send(SIGKILL);
  }
}

}  // namespace troupe::actors::chaos
