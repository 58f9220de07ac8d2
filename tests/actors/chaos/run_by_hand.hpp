// A run's facts, made by hand: a step takes 100 ms and is committed at its end.
#pragma once

#include "actors/chaos/run_facts.hpp"

namespace troupe::actors::chaos {

struct run_by_hand {
  explicit run_by_hand(std::uint32_t members = 4) {
    facts.members = members;
    facts.populations = {{duration{}, members}};
    facts.plans = 1;
    facts.members_at_end = members;
    facts.weights_hash = "w";
    facts.state_hash = "s";
    facts.steps_redone = 0;
    event("generation", {{"number", 0}, {"from_step", 0}});
  }

  void steps(std::uint64_t count, std::uint64_t generation = 0) {
    for (std::uint64_t i = 0; i < count; ++i) {
      now += std::chrono::milliseconds(100);
      step_record r;
      r.step = facts.steps.size() + 1;
      r.loss = 1.0 / static_cast<double>(r.step);
      r.tokens = 1000;
      r.world = facts.members;
      r.generation = generation;
      r.seconds = 0.1;
      facts.steps.push_back({r, now});
      facts.ended = now;
    }
  }
  void event(const std::string& name, nlohmann::json fields) {
    facts.events.push_back({name, std::move(fields), now});
  }
  injected_fault& fault(const std::string& id, fault_kind kind, const std::string& member) {
    injection what;
    what.which = {id, 1};
    what.kind = kind;
    facts.faults.push_back({what, {member}, now, now, "seen", {}});
    return facts.faults.back();
  }
  // A member is lost at once and the run goes on: noticed after 150 ms, told after 200, 500 in all.
  void recovery(const std::string& member, int number, std::uint64_t generation) {
    using namespace std::chrono_literals;
    now += 200ms;
    event("member_lost",
          {{"member", member}, {"cause", "gone"}, {"detect_ms", 150}, {"recovery", number}});
    now += 100ms;
    event("generation", {{"number", generation},
                         {"from_step", facts.steps.size()},
                         {"recovery", number},
                         {"mono", 7.0},
                         {"noticed_mono", 7.0 - 0.15}});
    now += 100ms;
    steps(1, generation);
    facts.steps.back().record.seconds = 0.2;
    event("recovered", {{"unblock_ms", 180}, {"recover_ms", 450}, {"recovery", number}});
    ++facts.plans;
  }

  run_facts facts;
  duration now{};
};

inline reference_facts reference_of(const run_facts& run) {
  reference_facts r;
  for (const seen_step& s : run.steps) r.steps.push_back(s.record);
  r.weights_hash = "w";
  r.state_hash = "s";
  r.goodput = 10000;  // a step of 1000 tokens in 100 ms
  return r;
}

}  // namespace troupe::actors::chaos
