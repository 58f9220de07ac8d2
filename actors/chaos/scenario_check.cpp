#include "actors/chaos/scenario_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "actors/chaos/metrics.hpp"
#include "actors/chaos/random_mix.hpp"
#include "actors/chaos/scenario_fields.hpp"

namespace troupe::actors::chaos {
namespace {

// What a simulated run tells; there is no use of processors, nothing that could be left behind, and
// no record of the moment at which all copies are there again.
bool in_virtual_time(std::string_view metric) {
  return find_metric(metric)->from_records && !metric.starts_with("exposed_") &&
         !metric.starts_with("effective_") && !metric.starts_with("goodput") && metric != "silence";
}

class checker {
 public:
  checker(const scenario& s, run_mode mode) : s_(s), mode_(mode), found_(s.file) {
    for (const fault& f : s.faults) ids_.push_back(f.id);
  }

  status check() {
    if (!s_.modes.contains(mode_)) {
      found_.add(1, "mode", fmt::format("the scenario is not meant for {}", name_of(mode_)));
    }
    people();
    for (const fault& f : s_.faults) one(f);
    chains();
    if (s_.random) random_table(*s_.random);
    if (s_.quiet) members_exist(1, "quiet.core", s_.quiet->core);
    outcome();
    if (found_.empty()) return done{};
    return found_.as_error();
  }

 private:
  void people() {
    std::set<member_id> seen;
    for (const auto& domain : s_.domains) {
      members_exist(1, "cluster.domains", domain);
      for (const member_id m : domain) {
        if (!seen.insert(m).second) {
          found_.add(1, "cluster.domains", fmt::format("m{} stands in two domains", m.value));
        }
      }
    }
    if (mode_ == run_mode::process && s_.classes != std::vector<std::string>{"cpu"}) {
      found_.add(1, "cluster.classes", "all processes of one machine are of the class \"cpu\"");
    }
  }

  void members_exist(std::size_t line, const std::string& key,
                     const std::vector<member_id>& members) {
    const std::uint32_t all = s_.members + s_.spares;
    for (const member_id m : members) {
      if (m.value < all) continue;
      found_.add(line, key,
                 fmt::format("there is no m{}: {} members and {} spares are m0 to m{}", m.value,
                             s_.members, s_.spares, all - 1));
    }
  }

  void one(const fault& f) {
    const std::string key = "fault " + f.id;
    if (std::ranges::count(ids_, f.id) > 1 && ids_seen_.insert(f.id).second) {
      found_.add(f.line, key, "two faults have this id");
    }
    if (f.id == "random") found_.add(f.line, key, "this id is kept for the table [random]");
    if (const auto why = cannot_do(mode_, f.kind)) {
      found_.add(f.line, key,
                 fmt::format("{} mode cannot do {}: {}", name_of(mode_), name_of(f.kind), *why));
    }
    target(f, key, f.target);
    if (mode_ == run_mode::sim && f.kind == fault_kind::hang &&
        !std::holds_alternative<duration>(f.lasts)) {
      found_.add(f.line, key, "in a simulated world a hang lasts for a duration");
    }
    if (f.kind == fault_kind::join && s_.spares == 0) {
      found_.add(f.line, key, "who joins is a spare: set cluster.spares");
    }
    if (const auto* at = std::get_if<at_steps>(&f.when)) {
      point(f, key, at->point.name);
      if (s_.quiet && s_.quiet->at_step && at->steps.front().first >= *s_.quiet->at_step) {
        found_.add(f.line, key,
                   fmt::format("never happens: step {} is quiet already", at->steps.front().first));
      }
    }
    if (const auto* at = std::get_if<at_moment>(&f.when)) {
      if (s_.quiet && s_.quiet->at_time && at->since_first_commit >= *s_.quiet->at_time) {
        found_.add(f.line, key, "never happens: it is quiet already by then");
      }
    }
    const auto* on = std::get_if<on_event>(&f.when);
    if (on && std::ranges::find(event_names(), on->name) == event_names().end()) {
      point(f, key, on->name);
    }
    if (const auto* after = std::get_if<after_fault>(&f.when)) {
      if (std::ranges::find(ids_, after->fault) == ids_.end()) {
        found_.add(f.line, key,
                   fmt::format("comes after \"{}\", and there is no such fault{}", after->fault,
                               suggestion(after->fault, ids_)));
      }
    }
  }

  void point(const fault& f, const std::string& key, const std::string& name) {
    if (!is_reached(name)) {
      found_.add(f.line, key,
                 fmt::format("nobody comes by the point {} in this version: a run is saved once, "
                             "at its end",
                             name));
    }
    if (mode_ != run_mode::process || seen_from_outside(name)) return;
    if (!takes_orders(f.kind)) {
      found_.add(f.line, key,
                 fmt::format("{} is done from outside of a worker, where only step-begin and "
                             "stable are seen",
                             name_of(f.kind)));
    } else if (f.chance < 1) {
      found_.add(f.line, key, "what comes at a point inside of a worker is not left to chance");
    }
  }

  void target(const fault& f, const std::string& key, const selector& s) {
    members_exist(f.line, key, named_members(s));
    if (s.what == selector::kind::domain) {
      const std::size_t domains = s_.domains.empty() ? s_.members : s_.domains.size();
      if (s.number >= domains) {
        found_.add(f.line, key,
                   fmt::format("there is no domain {}: they are 0 to {}", s.number, domains - 1));
      }
    }
    if (s.what == selector::kind::receiver) {
      if (std::ranges::find(ids_, s.fault) == ids_.end()) {
        found_.add(f.line, key,
                   fmt::format("receiver:{}: there is no such fault{}", s.fault,
                               suggestion(s.fault, ids_)));
      }
      if (mode_ == run_mode::process) {
        found_.add(f.line, key, "process mode cannot see who got a message");
      }
    }
    for (const selector& inner : s.excepted) target(f, key, inner);
  }

  // Whoever follows the chain from a fault must not come back to it.
  void chains() {
    for (const fault& f : s_.faults) {
      const fault* at = &f;
      for (std::size_t hops = 0; at != nullptr && hops <= s_.faults.size(); ++hops) {
        const auto* after = std::get_if<after_fault>(&at->when);
        if (after == nullptr) break;
        const auto next = std::ranges::find(s_.faults, after->fault, &fault::id);
        at = next == s_.faults.end() ? nullptr : &*next;
        if (at == &f) {
          found_.add(f.line, "fault " + f.id, "waits for itself: its chain of `after` is a circle");
          break;
        }
      }
    }
  }

  void random_table(const random_faults& r) {
    for (const auto& [kind, weight] : r.kinds) {
      if (const auto why = cannot_do(mode_, kind)) {
        found_.add(1, "random.kinds",
                   fmt::format("{} mode cannot do {}: {}", name_of(mode_), name_of(kind), *why));
      }
    }
    if (r.kinds.contains(fault_kind::join) && s_.spares == 0) {
      found_.add(1, "random.kinds", "who joins is a spare: set cluster.spares");
    }
    if (s_.quiet && s_.quiet->at_step && r.to_step > *s_.quiet->at_step) {
      found_.add(
          1, "random.to_step",
          fmt::format("is {}, but it is quiet from step {} on", r.to_step, *s_.quiet->at_step));
    }
    for (const selector& s : r.spare_roles)
      members_exist(1, "random.spare_roles", named_members(s));
  }

  void outcome() {
    for (const auto& [name, range] : s_.expect) {
      const metric_row* row = find_metric(name);
      if (mode_ == run_mode::process && row != nullptr && !row->from_records) {
        found_.add(1, "expect." + name, "process mode cannot measure it");
      }
      if (mode_ == run_mode::sim && row != nullptr && !in_virtual_time(name)) {
        found_.add(1, "expect." + name, "sim mode cannot measure it");
      }
      const bool needs_reference =
          name == "goodput_vs_fault_free" || name == "goodput_vs_available";
      if (needs_reference && s_.reference != "auto") {
        found_.add(1, "expect." + name, "needs reference = \"auto\"");
      }
    }
    for (const auto& [name, wanted] : s_.invariants) {
      if (!wanted || is_seen(mode_, name)) continue;
      found_.add(1, "invariants." + name,
                 fmt::format("{} mode cannot see whether it holds", name_of(mode_)));
    }
  }

  const scenario& s_;
  run_mode mode_;
  complaints found_;
  std::vector<std::string> ids_;
  std::set<std::string> ids_seen_;
};

}  // namespace

status check_scenario(const scenario& s, run_mode mode) { return checker(s, mode).check(); }

bool is_seen(run_mode mode, std::string_view invariant) {
  if (mode == run_mode::sim) {
    constexpr std::array checked = {"S-1", "S-2",  "S-3",  "S-4",  "S-5",  "S-6",  "S-7", "S-8",
                                    "S-9", "S-10", "S-11", "S-15", "S-17", "S-20", "L-2"};
    return std::ranges::find(checked, invariant) != checked.end();
  }
  // From the records: the chain of plans, steps that stand once and never go back, samples, bits,
  // progress after the last fault, and what is left behind.
  constexpr std::array seen = {"S-3", "S-6", "S-15", "S-20", "L-2", "L-7"};
  return std::ranges::find(seen, invariant) != seen.end();
}

}  // namespace troupe::actors::chaos
