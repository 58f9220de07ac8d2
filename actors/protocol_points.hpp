// The named points of the step protocol, for whoever watches a member without being part of it: the
// simulator checks the invariants at them. Every method does nothing by default, and nothing that a
// watcher does comes back to the protocol.
#pragma once

#include "actors/protocol/messages.hpp"

namespace troupe::actors {

class protocol_points {
 public:
  virtual ~protocol_points() = default;
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
