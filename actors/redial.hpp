// A broken link is no lost member: it is dialled again. What this decides is who dials, when, and
// when a member is given up. Pure; the worker carries it out.
//
// Both ends of a link notice its end, and if both dialled at once, each could close the link that
// the other keeps. So the member with the higher number dials at once and the other one only after
// a pause; and of two links the one that the higher number dialled stays. A member whose address
// refuses a dial is gone. One that is reached and says nothing gets as long as one
// whose signs of life are missing.
#pragma once

#include <chrono>
#include <map>

#include "config/base/clock.hpp"
#include "config/base/ids.hpp"

namespace troupe::actors {

class redial {
 public:
  struct limits {
    std::chrono::nanoseconds pause = std::chrono::milliseconds(10);
    // A port that nobody listens at any more belongs to a process that is gone.
    unsigned refusals = 1;
  };
  explicit redial(member_id self, limits l) : self_(self), limits_(l) {}

  // A link is missing, since now if it was not missing before. When to dial.
  std::chrono::nanoseconds missing(member_id who, time_since_start now);
  // A dial came to nothing; `reached`: something listens there. When to dial again, at most `most`
  // after the link began to be missing; negative: never, the member is given up.
  std::chrono::nanoseconds failed(member_id who, bool reached, time_since_start now,
                                  std::chrono::nanoseconds most);
  void linked(member_id who) { missing_.erase(who); }
  bool is_missing(member_id who) const { return missing_.contains(who); }

  // Does a new link take the place of one that is there? Ends of a link agree about this.
  bool replaces(member_id who, bool we_dialled_old, bool we_dialled_new) const;

  static constexpr std::chrono::nanoseconds never{-1};

 private:
  bool by_higher(member_id who, bool we_dialled) const { return we_dialled == (self_ > who); }

  struct absence {
    time_since_start since{};
    unsigned refusals = 0;
  };
  member_id self_;
  limits limits_;
  std::map<member_id, absence> missing_;
};

}  // namespace troupe::actors
