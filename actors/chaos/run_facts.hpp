// What is known of a run after its end: its records, what was done to it and when, on one clock.
// The input of measuring and judging, which know no file and no process.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "actors/chaos/happenings.hpp"
#include "actors/records.hpp"

namespace troupe::actors::chaos {

struct seen_step {
  step_record record;
  duration at{};  // of its commit, as seen from outside
};

struct seen_event {
  std::string name;  // as in events.jsonl
  nlohmann::json fields;
  duration at{};
};

// A fault that was ordered, and whether there is proof that it happened.
struct injected_fault {
  injection what;
  std::vector<std::string> names;  // of whom it struck: "worker-2"
  duration at{};                   // it was carried out
  std::optional<duration> proven;
  std::string proof;             // in words; why there is none where `proven` is unset
  std::optional<duration> over;  // of one that lasts, or unset: to the end of the run
};

struct population {
  duration from{};
  std::uint32_t running = 0;  // members that ran from then on
};

struct run_facts {
  int exit = 0;
  bool guard_struck = false;  // it was ended because it took too long
  duration started{}, ended{};
  std::vector<seen_step> steps;
  std::vector<seen_event> events;
  std::vector<injected_fault> faults;
  std::vector<refusal> refused;
  std::vector<population> populations;  // ascending, the first from `started`
  std::uint32_t members = 1;            // at full size
  std::optional<duration> quiet_at;
  std::uint64_t steps_before_quiet = 0;

  std::uint64_t plans = 0, members_at_end = 0;  // of the last plan
  std::string chain_trouble;                    // what is wrong with the chain of plans
  std::string records_trouble;                  // with steps.jsonl or events.jsonl
  std::string weights_hash, state_hash;         // of report.json; "" without one
  std::optional<std::uint64_t> steps_redone;    // of report.json
  std::vector<std::string> left_behind;         // processes and files
  // Of a simulated run: what the protocol's invariants say to it.
  std::uint64_t invariant_checks = 0;
  std::string violated, violation;  // "S-8" and in words; ""
};

struct reference_facts {
  std::vector<step_record> steps;
  std::string weights_hash, state_hash;
  double goodput = 0;  // tokens a second from the start command to the last commit
};

}  // namespace troupe::actors::chaos
