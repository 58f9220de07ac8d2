// What two members have said to each other, so that each message arrives once and in order although
// links break and a network loses, repeats, reorders and delays. One conversation is one side of
// it: it numbers, keeps what the other has not acknowledged, sends it again, and drops what came
// twice.
//
// A link alone does not suffice: when it breaks nobody knows which of its last frames the *actors*
// of the other side have seen. So acknowledgements are made here, above links, and outlive them.
//
// A pure state machine: frames and the time go in, frames and messages come out. The shell around
// it (the actor `peer`) calls take_frames() after every change and at next_deadline().
//
// Sent again is a short piece from the first gap on, with growing pauses: a peer that is only
// frozen must not find seconds' worth of copies when it thaws. Selective acknowledgements were not
// chosen; frames are lost with a link or not at all, except in simulation.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/transport.hpp"
#include "comm/wire/envelope.hpp"

namespace troupe::comm {

struct conversation_settings {
  std::string run_id;
  member_id self, peer;
  incarnation self_life, peer_life;
  std::chrono::nanoseconds resend_after = std::chrono::milliseconds(200);
  std::chrono::nanoseconds ack_after = std::chrono::milliseconds(20);
  std::size_t max_queued_bytes = std::size_t{64} << 20;
  // What may be under way without an acknowledgement; one frame always may.
  std::size_t max_unacknowledged_bytes = std::size_t{8} << 20;
  std::size_t max_unacknowledged_frames = 1024;
};

struct message {
  generation plan;
  bytes payload;
};

struct received {
  std::vector<message> messages;  // in order, each once
  std::string refused;            // why the frame was no part of this conversation; else empty
};

struct conversation_counters {
  std::uint64_t sent = 0, delivered = 0;        // messages
  std::uint64_t resent = 0, acks_alone = 0;     // frames
  std::uint64_t duplicates = 0, too_early = 0;  // frames dropped: seen before, beyond the window
  std::uint64_t refused = 0;
};

class conversation {
 public:
  explicit conversation(conversation_settings settings);

  // An error (io) when the queue is full, as the peer acknowledges nothing. `payload` has
  // at most max_message_bytes.
  status send(generation plan, bytes payload, std::chrono::nanoseconds now);

  received receive(bytes_view frame, std::chrono::nanoseconds now);
  received receive(envelope frame, std::chrono::nanoseconds now);

  // Without a link nothing goes out and nothing is due. A new link makes everything that is not
  // acknowledged go out again.
  void link_up(std::chrono::nanoseconds now);
  void link_down();

  // What should go out now.
  std::vector<bytes> take_frames(std::chrono::nanoseconds now);
  // When to call take_frames() again if nothing else happens; in the past if frames wait now.
  std::optional<std::chrono::nanoseconds> next_deadline() const;

  bool quiet() const { return unacknowledged_.empty() && !ack_due_; }
  std::size_t queued_bytes() const { return queued_bytes_; }
  std::size_t reordered_bytes() const { return early_bytes_; }
  const conversation_counters& counters() const { return counters_; }

  static constexpr std::size_t max_message_bytes = max_frame_bytes - max_envelope_bytes;

 private:
  std::optional<std::string> reason_to_refuse(const envelope& frame) const;
  void take_acknowledgement(std::uint64_t upto, std::chrono::nanoseconds now);
  void take_data(envelope frame, std::chrono::nanoseconds now, std::vector<message>& into);
  void want_ack_by(std::chrono::nanoseconds when);
  bool may_go_out() const;
  bytes encode_data(std::uint64_t sequence);
  std::chrono::nanoseconds pause() const;

  conversation_settings settings_;
  conversation_counters counters_;
  bool linked_ = false;
  std::chrono::nanoseconds ready_since_{};  // when the last frame became ready to go out

  // Outgoing. unacknowledged_[i] has the sequence number first_ + i; those below next_ went out.
  std::deque<message> unacknowledged_;
  std::uint64_t first_ = 1, next_ = 1, ever_sent_ = 0;
  std::size_t queued_bytes_ = 0, under_way_bytes_ = 0;
  std::optional<std::chrono::nanoseconds> resend_at_;
  unsigned silent_rounds_ = 0;  // pauses since the peer last acknowledged something

  // Incoming. What arrived before its turn waits in early_.
  std::uint64_t expected_ = 1;
  std::map<std::uint64_t, message> early_;
  std::size_t early_bytes_ = 0;
  std::optional<std::chrono::nanoseconds> ack_due_;
  std::size_t unanswered_frames_ = 0, unanswered_bytes_ = 0;
  generation last_plan_;
};

}  // namespace troupe::comm
