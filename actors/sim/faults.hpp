// Faults in a simulated world: which ones, drawn from the seed, and when each strikes. A fault
// waits for a step to be recorded and a while more, so it may fall into any moment of a step, of a
// change of plans, or of the fault before. Guarded as docs/chaos.md says: none strikes that would
// take the last living holder of some block, because then the world must wait or return to a
// checkpoint.
//
// What a launcher does is done here too: a process that has ended, because it was killed or
// expelled, is started again in its slot.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/sim/liveness.hpp"
#include "actors/sim/world.hpp"

namespace troupe::actors::sim {

enum class fault_kind : std::uint8_t { kill, freeze, cut, join, leave };

struct fault {
  fault_kind kind = fault_kind::kill;
  std::uint64_t after_step = 0;
  std::chrono::nanoseconds and_then{};  // this long after the step is recorded
  std::uint32_t target = 0;             // of those who live then, counted on; 0: the coordinator
  std::chrono::nanoseconds lasts{};     // freeze and cut
  bool noticed = true;                  // a kill: the network tells its peers
  bool may_uncover = false;  // a freeze: also of the last holder of a block, for whom all wait
};

// Up to `most` of them, at least one; the steps in which they strike are in the first two thirds.
std::vector<fault> faults_from_seed(std::uint64_t seed, std::uint32_t most, std::uint64_t steps);
std::string to_text(const fault& f);

class fault_driver {
 public:
  // The world outlives the driver, and so does whoever is told what is done to it.
  fault_driver(world& w, std::vector<fault> faults, liveness* told = nullptr);

  // Strikes this member now, if it works and the guard allows it; false: it does not. Also in the
  // middle of one of its handlers: then nothing that it sends after that leaves it.
  bool strike_now(const fault& f, std::size_t target);

  // Runs the world to its end, or until virtual time is over; `look` is called after every event.
  void run(
      time_since_start at_most, const std::function<void()>& look = [] {});

  // How many struck, and how many of them found nobody to strike and became a join.
  std::uint32_t struck() const { return struck_; }
  std::uint32_t refused() const { return refused_; }
  // What happened when, for whoever looks at a failed seed.
  const std::vector<std::string>& told() const { return told_; }

 private:
  struct due_fault {
    fault what;
    bool set = false;
  };
  void look();
  void strike(const fault& f);
  void hit(const fault& f, std::size_t target, bool at_once = false);
  std::optional<std::size_t> target_of(const fault& f) const;
  void start_again(std::size_t i);
  void cut_off(std::size_t i, bool at_once);
  void heal(std::size_t i);
  bool keeps_cover(std::size_t without) const;
  bool works(std::size_t i) const;
  bool may_strike(const fault& f, std::size_t target) const;
  void tell(const std::string& what);

  world& world_;
  liveness* liveness_;
  std::vector<due_fault> faults_;
  std::vector<bool> away_;         // frozen or cut off, by slot
  std::vector<bool> cut_;          // cut off
  std::vector<bool> restarting_;   // by slot
  std::set<std::size_t> leaving_;  // slots of those that were told to leave
  std::uint32_t struck_ = 0, refused_ = 0;
  std::vector<std::string> told_;
};

}  // namespace troupe::actors::sim
