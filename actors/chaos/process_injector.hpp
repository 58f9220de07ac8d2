// Carries faults out on real processes, and proves that they happened: a killed process is gone, a
// stopped one is in state T, a busy child has used time, who joined stands in the plan, who was
// drained has ended with 0, as its launcher says, and stands in no plan. Without proof a fault did
// not happen, whatever the system call answered.
//
// What only a worker can do, it is ordered to do to itself (order_files.hpp), at once or, armed, at
// a point that it comes to; it proves that itself.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/chaos/order_desk.hpp"
#include "actors/chaos/processes.hpp"
#include "actors/chaos/run_facts.hpp"

namespace troupe::actors::chaos {

struct injector_settings {
  std::string program = "/proc/self/exe";
  std::string run_directory;
  std::uint32_t members = 1;  // at the start: who joins gets the next number
  int cores = 1;
  std::string orders = {};  // the folder in which workers take orders; "": they take none
  std::uint64_t seed = 1;
};

class process_injector {
 public:
  process_injector(injector_settings settings, int output)
      : settings_(std::move(settings)), output_(output), desk_(settings_.orders, settings_.seed) {}
  ~process_injector();
  process_injector(const process_injector&) = delete;
  process_injector& operator=(const process_injector&) = delete;

  // Looks for workers among these processes; their names are kept.
  void find_workers(const std::vector<int>& candidates);
  // Nothing: it has no process here, or that has ended.
  const held_process* process_of(const std::string& name) const;
  std::set<std::string> running() const;  // and not stopped

  void begin(const injection& what, const std::vector<std::string>& names, duration now);
  void end(const occurrence& which, duration now);
  // Orders to workers, given at once or armed.
  order_desk& desk() { return desk_; }
  // What was armed has struck, and the schedule has taken it on.
  void record(const injection& what, duration now);
  // What became of what was begun. `planned`: names of the present plan's members.
  std::vector<happening> look(duration now, const std::set<std::string>& planned);
  // Everything that lasts ends; nothing more begins.
  void heal(duration now);

  void kill_all();  // workers and joiners, as far as they run
  const std::vector<injected_fault>& faults() const { return faults_; }
  std::vector<injected_fault>& faults() { return faults_; }

 private:
  struct deed {         // a fault that has begun
    std::size_t index;  // of faults_
    std::vector<std::string> names;
    std::vector<held_process> struck;    // the processes themselves: a name may get another one
    std::vector<held_process> busy;      // children of cpu-steal
    std::vector<held_process> commands;  // `troupe drain`
    std::optional<duration> kill_at;     // of a notice with a grace
    std::vector<std::uint64_t> orders;   // given for it
    bool waits_for_proof = true, lasts = false;
  };

  void strike(deed& d, const injection& what, duration now);
  void join(deed& d);
  void drain(deed& d);
  bool has_left(const deed& d, const std::set<std::string>& planned) const;
  std::string proof_of(const deed& d, const std::set<std::string>& planned) const;
  std::string hopeless(const deed& d, duration now) const;
  void undo(deed& d);

  injector_settings settings_;
  int output_;
  std::map<std::string, held_process> workers_;
  std::map<std::string, held_process> joiners_;
  std::uint32_t joined_ = 0;
  std::set<std::string> stopped_;
  std::vector<injected_fault> faults_;
  std::vector<deed> deeds_;
  order_desk desk_;
};

}  // namespace troupe::actors::chaos
