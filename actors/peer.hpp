// Stands for one other member: encodes what is said to it, keeps it until the other side's peer
// has acknowledged it, over as many links as that takes, and hands what it says to the router. It
// knows links by number only; making and proving them is the worker's (introductions).
#pragma once

#include <caf/all.hpp>

#include "actors/router.hpp"
#include "comm/conversation.hpp"
#include "comm/transport.hpp"
#include "config/base/clock.hpp"

namespace troupe::actors {

// --- what a peer is told ---
struct peer_linked {
  comm::link_id link;
};
struct peer_unlinked {};
struct peer_frame {
  comm::bytes frame;
};
// Asks for the answer peer_quiet once everything said is acknowledged.
struct peer_finish {};

// --- what it tells the worker ---
struct peer_quiet {
  member_id who;
};
struct peer_failed {
  member_id who;
  error why;
};

// What a peer needs; outlives it.
struct peer_surroundings {
  comm::control_lane& lane;
  router& mail;
  const clock_source& clock;
  generation plan;  // its messages belong to
};

caf::actor spawn_peer(caf::event_based_actor* parent, const peer_surroundings& around,
                      const comm::conversation_settings& settings);

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::peer_linked)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::peer_unlinked)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::peer_frame)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::peer_finish)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::peer_quiet)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::peer_failed)
