// A transport with something wrong on the way out: whatever a process sends passes message_faults
// first. It stands before any other transport, the real one and the simulated one, and is not there
// at all in an ordinary run.
//
// Held frames of a link keep their order, as on a connection that stalls: behind one that waits
// everything waits, but for those that are to be overtaken. A cut therefore holds, and what was
// held arrives when it heals, unless the link has ended by then. Held bulk messages are read from
// the sender's memory when they go out, as the lane's contract allows; they end with their lane.
//
// Whom a link leads to is learned from the envelopes that pass, and from what processes say of
// themselves in handshakes, so that a cut also holds somebody who dials again.
#pragma once

#include <memory>

#include "comm/filter_state.hpp"
#include "comm/transport.hpp"

namespace troupe::comm {

class control_filter;

class filtered_transport final : public transport {
 public:
  filtered_transport(std::unique_ptr<transport> inner, filter_settings settings);
  ~filtered_transport() override;
  filtered_transport(const filtered_transport&) = delete;
  filtered_transport& operator=(const filtered_transport&) = delete;

  // Rules may begin and end at any time between two calls; what an end sets free goes out with the
  // next progress().
  message_faults& faults();

  void start(control_handler& handler) override;
  control_lane& control() override;
  result<std::unique_ptr<bulk_lane>> open_bulk(generation number, bulk_handler& handler) override;
  bool progress() override;
  void wait(std::chrono::nanoseconds at_most, waiting how) override;
  void wake() override;
  traffic sent() const override;

 private:
  std::unique_ptr<transport> inner_;
  std::shared_ptr<filter_state> state_;
  std::unique_ptr<control_filter> control_;
};

}  // namespace troupe::comm
