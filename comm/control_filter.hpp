// The control lane behind which messages go astray; see filtered_transport.hpp. Knows whom each
// link leads to, and keeps what is held and what may be said again.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "comm/filter_state.hpp"
#include "comm/wire/envelope.hpp"

namespace troupe::comm {

class control_filter final : public control_lane, public control_handler {
 public:
  control_filter(control_lane& inner, filter_state& shared) : inner_(inner), shared_(shared) {}

  void listen(control_handler& handler) { handler_ = &handler; }

  const address& local_address() const override { return inner_.local_address(); }
  link_id connect(const address& to) override;
  void send(link_id link, bytes frame) override;
  void close(link_id link) override;

  void link_opened(link_id link, bool we_connected) override;
  void frame_received(link_id link, bytes_view frame) override;
  void link_closed(link_id link, const std::string& why) override;

  // True if anything went out.
  bool release();
  std::optional<time_since_start> next_due() const;

 private:
  struct held {
    time_since_start due;
    bool overtaken;
    bytes frame;
  };
  struct said {
    generation plan;
    bytes frame;
  };

  std::optional<member_id> peer_of(link_id link) const;

  void learn(link_id link, member_id other, const envelope& what, bool theirs);

  void keep(member_id to, generation plan, const bytes& frame);

  void replay(link_id link, std::optional<member_id> to, generation plan);

  void put(link_id link, const message_fate& fate, bytes frame);

  void forget(link_id link);

  control_lane& inner_;
  filter_state& shared_;
  control_handler* handler_ = nullptr;
  std::map<link_id, member_id> peers_;
  std::map<link_id, std::string> dialled_;  // of links whose other end has not spoken yet
  std::map<std::string, member_id> at_address_;
  std::map<link_id, std::deque<held>> held_;
  std::map<member_id, std::deque<said>> said_;
};

}  // namespace troupe::comm
