// A scenario: one experiment that ends in pass or fail. Who is there, what goes wrong and when,
// what is expected. A plain value; scenario_reader makes it from a file, scenario_check says
// whether a mode can run it, `schedule` decides from it what happens when, `judge` compares the
// outcome.
//
// Its identity is the hash of its canonical text, in which every default is written out: a comment
// or the order of keys does not change it, anything that could change the run does. A report
// carries it, so that a result is never taken for one of another scenario.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "actors/chaos/fault_kinds.hpp"
#include "actors/chaos/named_points.hpp"
#include "actors/chaos/selector.hpp"

namespace troupe::actors::chaos {

using duration = std::chrono::nanoseconds;

struct step_count {
  std::uint64_t value = 0;
  friend auto operator<=>(const step_count&, const step_count&) = default;
};
using extent = std::variant<duration, step_count>;

struct step_range {
  std::uint64_t first = 0, last = 0;  // both included
  friend bool operator==(const step_range&, const step_range&) = default;
};

// When a fault comes. Every fault has exactly one of these.
struct at_steps {
  std::vector<step_range> steps;  // ascending
  named_point point = {"step-begin", {}};
};
struct at_moment {
  duration since_first_commit{};
};
struct after_fault {
  std::string fault;
  extent plus = duration{};
};
struct on_event {
  std::string name;  // a named point or an event
};
struct periodic {
  extent every = duration{};
  extent jitter = duration{};  // of the same sort; each gap is longer or shorter by up to this
};
struct poisson {
  double per_hour = 0;
};
using trigger = std::variant<at_steps, at_moment, after_fault, on_event, periodic, poisson>;

struct until_quiet {
  friend bool operator==(const until_quiet&, const until_quiet&) = default;
};
using lifetime = std::variant<until_quiet, duration, step_count>;

using parameter = std::variant<std::int64_t, double, bool, std::string, duration>;
using parameters = std::map<std::string, parameter>;

struct fault {
  std::string id;
  fault_kind kind = fault_kind::kill;
  selector target;
  trigger when = at_moment{};
  double chance = 1;                   // of each occasion
  std::optional<std::uint64_t> count;  // at most so often; unset: at every occasion
  bool each_attempt = false;           // a step that is done again is an occasion again
  lifetime lasts = until_quiet{};      // of kinds that last
  parameters params;
  bool must_happen = true;
  std::size_t line = 0;  // of its id, for messages; no part of its identity
};

struct random_faults {
  std::uint64_t from_step = 1, to_step = 0;
  double per_hour = 0;
  duration min_gap{};
  std::uint64_t max_open = 1;          // lasting faults at the same time
  std::map<fault_kind, double> kinds;  // weights; empty: those of the mix
  std::string mix = "even";            // even: every kind that the mode can do; field: as it breaks
  bool swarm = false;                  // a random part of the kinds, another one for each seed
  std::vector<selector> spare_roles;   // never struck
};

struct quiet_phase {
  std::optional<std::uint64_t> at_step;
  std::optional<duration> at_time;
  std::vector<member_id> core;  // healed and left alone; empty: all who are alive
  std::optional<duration> settle;
  std::uint64_t progress = 0;  // steps that must commit after it begins
};

struct limit {
  double least = 0, most = 0;
};

struct scenario {
  std::string file;  // for messages; no part of its identity
  std::string name, about;
  std::uint64_t seed = 1, repeat = 1;
  std::set<run_mode> modes;  // never empty

  std::uint32_t members = 1, spares = 0;
  std::vector<std::vector<member_id>> domains;  // empty: each member alone
  std::vector<std::string> classes = {"cpu"};

  std::string config;                       // path, relative to the scenario's folder
  std::map<std::string, std::string> sets;  // "training.steps" -> "60"
  std::string reference = "auto";           // auto, none, or a weights hash
  bool reference_given = false;             // it stands in the file; no part of its identity
  duration guard = std::chrono::minutes(10);

  std::vector<fault> faults;
  std::optional<random_faults> random;

  bool inside_promise = true;
  std::set<std::uint32_t> may_lose;  // blocks, counted through the model

  std::optional<quiet_phase> quiet;

  std::map<std::string, bool> invariants;  // those named in the file
  bool equal_bits = true;
  std::string ledger = "equal";  // equal, complete or none

  std::map<std::string, limit> expect;  // by metric
};

const std::vector<std::string>& invariant_names();  // S-1 ... S-20, L-1 ... L-7

std::string to_text(duration d);  // "400ms": the largest unit that is exact
std::string to_text(const extent& e);
std::string to_text(const lifetime& l);

// Everything that decides what happens, one line of JSON.
std::string canonical_text(const scenario& s);
// 32 hex digits.
std::string identity_of(const scenario& s);

}  // namespace troupe::actors::chaos
