// Where the messages of one process go: to a member's peer, or to the local actor that a message
// concerns. One place knows which actor takes what, so that no actor holds handles to all others.
#pragma once

#include <caf/all.hpp>
#include <cstdint>
#include <map>
#include <vector>

#include "actors/protocol/messages.hpp"

namespace troupe::actors {

class router {
 public:
  explicit router(member_id self) : self_(self) {}

  member_id self() const { return self_; }

  // Local actors; an empty handle: messages for it are dropped, which happens only while the
  // process ends or a plan is not adopted yet.
  caf::actor worker, coordinator, rank;
  std::vector<caf::actor> primary_shards, backup_shards;  // by layer

  void set_coordinator(member_id id) { coordinator_id_ = id; }
  void set_peer(member_id id, caf::actor peer) { peers_[id] = std::move(peer); }
  void remove_peer(member_id id) { peers_.erase(id); }
  const std::map<member_id, caf::actor>& peers() const { return peers_; }

  // To another member through its peer, to this one directly.
  void send(member_id to, protocol::message what);
  void to_coordinator(protocol::message what) { send(coordinator_id_, std::move(what)); }
  // To every other member with a peer, then to this one.
  void broadcast(const protocol::message& what);
  // A message has come: to the local actor that it concerns.
  void deliver(member_id from, protocol::message what);

 private:
  caf::actor target_of(const protocol::message& what) const;

  member_id self_, coordinator_id_;
  std::map<member_id, caf::actor> peers_;
};

}  // namespace troupe::actors
