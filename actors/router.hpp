// Where the messages of one process go: to a member's peer, or to the local actor that a message
// concerns. One place knows which actor takes what, so that no actor holds handles to all others.
#pragma once

#include <caf/all.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/protocol_points.hpp"

namespace troupe::actors {

class router {
 public:
  explicit router(member_id self) : self_(self) {}

  member_id self() const { return self_; }

  // Local actors; an empty handle: messages for it are dropped, which happens only while the
  // process ends or a plan is not adopted yet.
  caf::actor worker, coordinator, rank;
  std::vector<caf::actor> primary_shards, backup_shards;  // by layer
  protocol_points* points = nullptr;                      // nothing: nobody watches

  // The plan that this member acts for; nothing: it acts for none, because it has not adopted one
  // or has promised the next. Messages about steps of an older plan, or of one that was promised
  // away, are dropped: they mean nothing any more. Those of a newer one, whose sender was faster to
  // adopt it, wait until it is acted for.
  void act_for(std::optional<generation> plan);

  void set_coordinator(member_id id) { coordinator_id_ = id; }
  void set_peer(member_id id, caf::actor peer) { peers_[id] = std::move(peer); }
  void remove_peer(member_id id) { peers_.erase(id); }
  const std::map<member_id, caf::actor>& peers() const { return peers_; }

  // To another member through its peer, to this one directly. Of a member without a peer the worker
  // is told: it makes one for a member of the plan.
  // A mark is told to `points` when the message has been handed on: a frame of another member's to
  // the lane.
  using mark = std::optional<sent_mark>;
  void send(member_id to, protocol::message what, const mark& sent = {});
  void to_coordinator(protocol::message what, const mark& sent = {}) {
    send(coordinator_id_, std::move(what), sent);
  }
  // To every other member with a peer, then to this one, which is no sending.
  void broadcast(const protocol::message& what, const mark& sent = {});
  void tell(const mark& sent, member_id to) const {
    if (sent && points != nullptr) points->reached(self_, sent->at, sent->step, to);
  }
  // A message has come, sent in this plan: to the local actor that it concerns.
  void deliver(member_id from, generation plan, protocol::message what);
  std::uint64_t refused() const { return refused_; }  // messages of plans not acted for

 private:
  caf::actor target_of(const protocol::message& what) const;

  member_id self_, coordinator_id_;
  struct early_message {
    member_id from;
    generation plan;
    protocol::message what;
  };
  static constexpr std::size_t most_early = 4096;

  std::optional<generation> plan_, newest_;
  std::vector<early_message> early_;
  std::uint64_t refused_ = 0;
  std::map<member_id, caf::actor> peers_;
};

}  // namespace troupe::actors
