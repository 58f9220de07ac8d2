// Carries faults out in a simulated world, and proves that they happened: the counterpart of
// process_injector. Between every member and its network stands the filter that real workers have;
// devices that are to hang are slow for as long; an exception is thrown in the actor that reaches
// the next point.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/chaos/run_facts.hpp"
#include "actors/sim/world.hpp"
#include "comm/filtered_transport.hpp"

namespace troupe::actors::chaos {

// "worker-2": a slot of a simulated world has the number of its member.
std::string name_of_world_slot(std::size_t i);

class world_injector {
 public:
  explicit world_injector(std::uint64_t seed) : seed_(seed) {}

  // What the world is made of; then the world itself, which ends before this.
  sim::world_parts parts();
  void strikes_in(sim::world& w);

  void begin(const injection& what);
  void end(const occurrence& which);
  // What began since, each once.
  std::vector<occurrence> take_begun();
  // In an actor at a point; throws if it is to.
  void at_point(member_id who, std::string_view point, std::uint64_t step);

  bool stands_still(std::size_t i) const { return frozen_.contains(i); }
  std::optional<member_id> joiner() const { return joiner_; }
  // A new process begins in this slot.
  void new_life(std::size_t i) { hangs_until_.erase(i); }
  std::vector<injected_fault>& faults() { return faults_; }

 private:
  struct rule {
    std::size_t member;
    comm::filtered_transport* filter;  // of the life that it was given to
    std::uint64_t id;
  };
  struct lasting {
    std::vector<std::pair<std::size_t, incarnation>> frozen;
    std::vector<rule> rules;
  };

  void spoil_links(const injection& what, lasting& of);
  void tell_to_leave(const injection& what);
  void prove(injected_fault& f, std::string words);
  void look_for_proofs();
  // Also while the world is being made.
  time_since_start now() const { return world_ != nullptr ? world_->now() : time_since_start(0); }
  bool lives(const rule& r) const { return filters_.at(r.member) == r.filter; }

  std::uint64_t seed_;
  sim::world* world_ = nullptr;
  std::map<std::size_t, comm::filtered_transport*> filters_;  // by slot, of its present life
  std::map<std::size_t, time_since_start> hangs_until_;
  std::map<std::size_t, std::pair<std::size_t, std::string>> throws_;  // by slot: fault, actor
  std::map<std::size_t, std::size_t> joins_;                           // by slot: fault
  std::map<occurrence, lasting> open_;
  std::set<std::size_t> frozen_;
  std::optional<member_id> joiner_;
  std::vector<injected_fault> faults_;
  std::vector<occurrence> begun_;
  std::uint64_t rules_ = 0;
};

}  // namespace troupe::actors::chaos
