// Whether a simulated world goes on as it should: what must happen within a time, besides what must
// never happen (invariants). The numbers are those under which docs/simulation.md explains them:
//
//   L-1  free       after a loss every other member leaves what it waited for, by its promise
//   L-2  progress   with every block in reach, a new step is committed
//   L-3  redundancy every block has its copies again
//   L-4  all in     whoever is well and wants in is in the plan
//   L-5  few plans  two for a loss, two for whoever comes
//   L-6  waiting    with a block out of reach: nothing is done but waiting, and that is said
//   L-7  nothing left when all is over, no connection is open and nobody works on
//
// All but the last count from the moment when nothing was disturbed any more, and from when the
// others could know of it: of a silent loss they know after the time of eviction. Bounds are in
// virtual time and hold under every network that a seed draws.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/sim/invariants.hpp"
#include "actors/sim/world.hpp"

namespace troupe::actors::sim {

// How long things may take, from when they could be known.
struct liveness_bounds {
  time_since_start free = std::chrono::seconds(1);
  time_since_start step = std::chrono::seconds(2);
  time_since_start redundancy = std::chrono::seconds(2);
  time_since_start joining = std::chrono::seconds(2);
  // Of a world that waits: turns of all members together, each second and for each member.
  double turns_while_waiting = 200;
  std::size_t plans_for_a_loss = 2, plans_for_a_newcomer = 2;
};

class liveness {
 public:
  // Both outlive the object. The invariants know who promised what.
  liveness(const world& w, const invariants& points, const liveness_bounds& bounds = {});

  // --- what is done to the world ---
  // A member does not act any more; silent: nobody is told, so only the silence says it.
  void struck(std::size_t who, bool silent);
  // It acts again, as the process that it was.
  void back(std::size_t who);
  // A process begins in this slot.
  void started(std::size_t who);
  // It has been told to leave, and goes when it can.
  void leaves(std::size_t who);

  // After every event.
  void look();
  // After a run that came to its end.
  void check_end();

  const std::optional<violation>& first() const { return first_; }
  std::uint64_t checks() const { return checks_; }

 private:
  struct slot {
    bool acts = true, wants_in = true, ended = false;
    time_since_start since{};  // it acts without a break
  };
  // Others have to be free of a plan by then.
  struct duty {
    time_since_start begun{}, due{};
    std::size_t who = 0;
    generation of;
  };
  bool in_reach() const;
  void disturbed(time_since_start known_after);
  void look_at_ended();
  void check_free(const duty& d);
  void check_progress();
  void check_waiting();
  void check_copies();
  void check_members();
  void report(const char* rule, member_id who, std::string what);
  slot& at(std::size_t who);

  const world& world_;
  const invariants& points_;
  liveness_bounds bounds_;
  time_since_start suspect_, evict_;
  std::vector<slot> slots_;
  std::vector<duty> duties_;
  time_since_start settled_{};  // what was done by then can be known
  time_since_start last_commit_{}, next_look_{};
  std::size_t lines_ = 0;
  std::size_t losses_ = 0, arrivals_ = 0;
  // While some block is out of reach.
  std::optional<time_since_start> waiting_since_;
  std::uint64_t turns_before_ = 0;
  std::size_t said_before_ = 0;
  std::optional<violation> first_;
  std::uint64_t checks_ = 0;
};

}  // namespace troupe::actors::sim
