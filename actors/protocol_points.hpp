// The named points of the step protocol, for whoever watches a member without being part of it: the
// simulator checks the invariants at them, and chaos strikes there. Every method does nothing by
// default, and nothing that a watcher does comes back to the protocol.
//
// Two kinds of calls. reached() is about a place: it comes exactly where its name says, in the
// middle of a handler, so that a member which ends in the call has done what comes before the place
// and nothing of what comes after. The others are about what is there: each brings along what can
// be compared. A point that comes several times in one step (the k-th message that is sent) is
// called each time; whoever watches counts, so that the actors need not.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "actors/protocol/messages.hpp"

namespace troupe::actors {

// In the order in which a step, and a change, comes by them. Who reaches each one, and where:
// docs/chaos.md.
enum class protocol_point : std::uint8_t {
  // one step
  step_begin,
  microbatch_done,
  partial_sent,
  reduced,
  grad_forwarded,
  grad_held,
  acked,
  voted,
  votes_complete,
  decided,
  commit_sent,
  commit_seen,
  applying,
  applied,
  params_sent,
  params_complete,
  stable,
  // from a plan to the next
  suspected,
  collect_sent,
  promised,
  collected,
  plan_written,
  published,
  verdict_sent,
  adopted,
  resumed,
  copy_begin,
  copy_half,
  copy_verified,
  redundancy_restored,
  // who comes and goes
  notice_received,
  drained,
  join_hello,
  join_admitted,
};
inline constexpr std::size_t protocol_point_count = 34;

// "commit-sent"
std::string_view name_of(protocol_point at);
std::optional<protocol_point> protocol_point_named(std::string_view name);

// What it means that a message has been sent to another member: told when it was handed to the
// lane.
struct sent_mark {
  protocol_point at;
  std::uint64_t step;
};

// The how-manieth time it is that a member comes by a point in one step, from 1; what is done again
// under the next plan is counted anew.
class point_counter {
 public:
  void begin_plan() { passes_ = {}; }
  std::uint32_t count(protocol_point at, std::uint64_t step) {
    auto& [of, passes] = passes_[static_cast<std::size_t>(at)];
    if (of != step) passes = 0;
    of = step;
    return ++passes;
  }

 private:
  std::array<std::pair<std::uint64_t, std::uint32_t>, protocol_point_count> passes_{};
};

class protocol_points {
 public:
  virtual ~protocol_points() = default;
  // step: that the point belongs to, or that the member is doing. to: who gets what was sent.
  virtual void reached(member_id, protocol_point, std::uint64_t /*step*/,
                       std::optional<member_id> /*to*/) {}

  virtual void plan_adopted(member_id, const protocol::plan&) {}
  // The primary has all nodes and begins to add them.
  virtual void node_taken(member_id, std::uint64_t /*step*/, const protocol::node_key&) {}
  virtual void sum_held_by_backup(member_id, std::uint64_t /*step*/, protocol::block_id,
                                  const hash128&) {}
  virtual void voted(member_id, const protocol::vote&) {}
  virtual void record_seen(member_id, const protocol::record_notice&) {}
  virtual void block_applied(member_id, protocol::block_id, std::uint64_t /*version*/) {}
  virtual void layer_opened(member_id, std::uint64_t /*step*/, std::uint32_t /*layer*/) {}
  // A copy of a block is here, at this version, and from now on keeps up.
  virtual void copy_verified(member_id, protocol::block_id, std::uint64_t /*version*/) {}
  virtual void promised(member_id, generation /*next*/) {}
  virtual void committed(member_id, std::uint64_t /*step*/) {}
};

}  // namespace troupe::actors
