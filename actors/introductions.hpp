// The gate of a process: every new link proves itself here before a word of it counts. Carries the
// handshakes of links that are open but unknown, gives up those that say nothing, and afterwards
// passes a link's frames to the peer that it belongs to and its end to the worker.
//
// The number of links that are being introduced is bounded, so a stranger who knocks again and
// again costs a bounded amount of memory and no peer its place.
#pragma once

#include <caf/all.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "actors/peer.hpp"
#include "comm/handshake.hpp"
#include "comm/transport.hpp"
#include "config/base/clock.hpp"

namespace troupe::actors {

// --- what the worker is told ---
// A link has proven itself. It waits for keep() or close().
struct introduced {
  comm::link_id link;
  comm::facts who;
  bool we_connected;
};
// A link that we made came to nothing: unreachable, silent, or one side refused the other.
struct not_introduced {
  comm::link_id link;
  std::string why;
  bool refused = false;  // the two know each other and one does not want the other
  bool reached = false;  // the link had opened: something listens there
};
// Somebody came who does not belong here.
struct visitor_refused {
  std::string why;
};
// A kept link ended.
struct link_ended {
  comm::link_id link;
  member_id who;
  std::string why;
};

struct introductions_settings {
  comm::facts me;
  comm::secret key;
  std::function<comm::nonce()> number = comm::fresh_nonce;      // a simulation has its own
  std::chrono::nanoseconds patience = std::chrono::seconds(5);  // comm.handshake_seconds
  std::size_t most_strangers = 256;                             // links being introduced at a time
};

class introductions final : public comm::control_handler {
 public:
  introductions(comm::transport& over, const clock_source& clock,
                const introductions_settings& settings);

  // Before any link opens.
  void set_worker(caf::actor worker) { worker_ = std::move(worker); }

  // From now on: whoever has proven itself and is refused here is told why.
  void admit_by(comm::handshake::admission admit) { admit_ = std::move(admit); }

  comm::link_id connect(const comm::address& to);
  // The link is this member's from now on; its frames go to `peer`. False: it ended meanwhile.
  bool keep(comm::link_id link, member_id who, caf::actor peer);
  void close(comm::link_id link);
  // Whoever comes after it is turned away at the door.
  void close_all();

  // Turns away those who were silent for too long.
  void give_up_silent();

  // When a member was last heard, over whatever link.
  std::optional<time_since_start> last_heard(member_id who) const;
  std::uint64_t refused() const { return refused_; }

  void link_opened(comm::link_id link, bool we_connected) override;
  void frame_received(comm::link_id link, comm::bytes_view frame) override;
  void link_closed(comm::link_id link, const std::string& why) override;

 private:
  struct stranger {
    std::optional<comm::handshake> talk;  // once the link is open
    bool we_connected = false;
    time_since_start until{};
    std::string at = {};  // where we connected to, in words
  };
  struct known {
    member_id who;
    caf::actor peer;
  };
  void turn_away(comm::link_id link, const std::string& why, bool refused, bool garbled = false);

  comm::transport& over_;
  const clock_source& clock_;
  introductions_settings settings_;
  caf::actor worker_;
  comm::handshake::admission admit_;
  std::map<comm::link_id, stranger> strangers_;
  std::map<comm::link_id, known> known_;
  std::map<comm::link_id, std::vector<comm::bytes>> early_;  // proven, not kept yet
  std::map<member_id, time_since_start> heard_;
  std::uint64_t refused_ = 0;
  bool ended_ = false;
};

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::introduced)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::not_introduced)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::link_ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::visitor_refused)
