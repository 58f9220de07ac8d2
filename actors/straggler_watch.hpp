// Who is the slow one? In a step that all members make together, everybody takes as long as the
// slowest, so the time of a step says nothing, and waiting looks like work from outside. What tells
// is each member's own work: what its device was busy with, for each virtual rank that it computes.
// A member is named when that is clearly more than the others' for several steps in a row, with the
// phase in which it loses most, and the word is taken back when it is over.
//
// Nobody is evicted for being slow: a wrong suspicion would cost more than the slow member does.
// Pure, and its memory is bounded: a few numbers a member.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/plan.hpp"

namespace troupe::actors {

struct straggler_rule {
  std::size_t steps = 8;  // whose median counts
  double slow = 1.5;      // times the others' median: it is named
  double fine = 1.25;     // ... below which the word is taken back
  double unseen = 0.001;  // [s] differences below are noise
};

struct straggler {
  member_id who;
  bool over = false;  // it is not slow any more
  double ratio = 1;   // its own work over the others'
  double work = 0;    // [s a step], of its share
  double others = 0;  // [s a step], what the others would need for that share
  std::string phase;  // where it loses most: "forward"
};

class straggler_watch {
 public:
  explicit straggler_watch(const straggler_rule& rule = {}) : rule_(rule) {}

  // One committed step of this plan; what is new about anybody.
  std::vector<straggler> step(const protocol::plan& p,
                              const std::map<member_id, protocol::step_facts>& facts);
  // Own work over the others' median, of the newest steps; nothing: not known yet.
  std::optional<double> ratio(member_id who) const;

 private:
  using by_phase = std::array<double, 4>;  // forward, backward, reduce, apply
  struct seen {
    incarnation life;
    std::vector<by_phase> steps;  // a ring of the newest
    std::size_t next = 0;
    std::optional<double> ratio;
    bool slow = false;
  };

  straggler_rule rule_;
  generation plan_;
  std::map<member_id, seen> members_;
};

}  // namespace troupe::actors
