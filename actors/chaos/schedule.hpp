// What goes wrong when: a state machine that is told what happens in a run and answers with the
// faults that are due now, and with the ends of those that have lasted long enough. It knows no
// process, clock or file; the simulator and the watcher of real processes tell it the same things.
//
// Every random choice is the mixture of (seed, fault, how-manieth occasion), so that adding a fault
// to a scenario does not move the others, and the same happenings give the same faults.
//
// A fault is refused, and counted, where its target is nobody, no spare is left to join, or
// the guard of inside_promise says that some block would lose its last holder. Where a target
// leaves a choice (any, holder:7), those that may be struck are preferred. Not chosen: waiting
// until a refused fault fits, because it would then strike at a moment that nobody asked for.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/chaos/aim.hpp"
#include "actors/chaos/happenings.hpp"
#include "actors/chaos/target_lookup.hpp"

namespace troupe::actors::chaos {

class schedule {
 public:
  // Requires that check_scenario() finds nothing. `seed`: of this repetition.
  schedule(scenario s, run_mode mode, std::uint64_t seed);

  orders tell(const happening& what, duration now, const world_view& world);
  // What workers should be told now to do at points that only they see; all of it, each time.
  std::vector<armed_fault> to_arm(const world_view& world) const;
  // When to tell that time has passed, at the latest; nothing: only other happenings matter.
  std::optional<duration> next_due() const;

  bool quiet() const { return quiet_; }
  std::uint64_t injected(const std::string& fault) const;  // without those that failed
  std::uint64_t joins() const { return joins_; }
  std::vector<occurrence> open() const;  // lasting faults

 private:
  struct lane {  // a fault and what it waits for
    fault what;
    std::uint64_t occasions = 0, injected = 0, failed = 0;
    std::set<std::uint64_t> steps_seen;
    std::vector<duration> due_at;  // ascending
    std::vector<std::uint64_t> due_steps;
    bool random = false, armed = false;
    bool ahead = false;  // given to workers ahead: see to_arm()
  };
  struct open_fault {
    occurrence which;
    fault_kind kind;
    chosen whom;
    std::optional<duration> until;
    std::optional<std::uint64_t> until_step;
    bool random;
  };
  struct doomed {  // ordered to end, whether it shows already or not
    member_id member;
    incarnation life;
    occurrence by;
  };
  struct moment {
    duration now;
    world_view& world;
    orders& out;
  };

  void first_commit(const moment& at);
  void on_time(const moment& at);
  void on_step(const moment& at, std::uint64_t step);
  void on_committed(const moment& at, std::uint64_t step);
  void on_point(const moment& at, const point_reached& p);
  void on_named(const moment& at, const std::string& event);
  void on_began(const moment& at, const occurrence& which);
  void on_struck(const moment& at, const armed_struck& what);
  void begin_quiet(const moment& at);
  void end_due(const moment& at);

  std::uint64_t draw(const lane& l, std::string_view what) const;
  void arm_next(lane& l, duration from);
  static bool matches_step(lane& l, std::uint64_t step, const named_point& point);
  void occasion(lane& l, const moment& at, const std::string& why,
                std::optional<member_id> at_member = std::nullopt);
  fault random_fault(const lane& l) const;
  strike taken() const;
  void take_on(lane& l, const moment& at, injection next, const lifetime& lasts);
  aim_rules rules_of(const lane& l) const;
  void doom(member_id m, const occurrence& by, world_view& world);
  void without_doomed(world_view& world) const;

  scenario s_;
  std::uint64_t seed_;
  std::map<fault_kind, double> random_kinds_;
  std::vector<lane> lanes_;  // of the scenario's faults, then of the random ones
  std::vector<open_fault> open_;
  std::vector<doomed> doomed_;
  std::map<std::string, member_id> receivers_;
  std::optional<duration> first_commit_;
  std::uint64_t step_ = 0;  // the one in progress
  std::uint64_t joins_ = 0;
  std::optional<duration> last_random_;
  bool quiet_ = false;
};

}  // namespace troupe::actors::chaos
