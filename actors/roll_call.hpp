// Who has come before there is a plan: one process for each slot, the newest life of it, and which
// slots have nobody yet. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/protocol/planner.hpp"
#include "comm/handshake.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {

// A member as the planner knows it, from what it says of itself. It has a wish.
protocol::candidate candidate_from(const comm::facts& who);

class roll_call {
 public:
  // Slots count from 0; `me` is one of the expected.
  roll_call(comm::facts me, std::uint32_t expected) : me_(std::move(me)), expected_(expected) {}

  enum class entry : std::uint8_t {
    taken,     // new, or the same process once more
    replaces,  // a newer life of a slot whose older one is gone now
    outlived,  // an older life than the one that is here: not taken
  };
  // `who` has a wish that is not this member's own.
  entry note(const comm::facts& who);
  void erase(member_id who) { others_.erase(who); }

  std::size_t here() const { return others_.size() + 1; }
  bool complete() const { return here() >= expected_; }
  // The slots that have nobody, as "2, 5-9".
  std::string missing() const;
  // Why it ends when not all came in time.
  error too_few(std::chrono::nanoseconds waited) const;
  const comm::facts* find(member_id who) const;  // nullptr: has not come
  std::vector<comm::facts> others() const;       // by slot
  // All who are here, as the planner knows them.
  std::vector<protocol::candidate> candidates() const;

 private:
  comm::facts me_;
  std::uint32_t expected_;
  std::map<member_id, comm::facts> others_;
};

}  // namespace troupe::actors
