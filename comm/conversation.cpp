#include "comm/conversation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::comm {
namespace {

using std::chrono::nanoseconds;

// What a message costs in memory beside its payload, so that empty ones count too.
constexpr std::size_t overhead_bytes = sizeof(message) + 16;

// How much one round of resending repeats at most.
constexpr std::size_t resend_frames = 64;
constexpr std::size_t resend_bytes = std::size_t{256} << 10;

// The pause between two rounds grows up to this power of two.
constexpr unsigned max_doublings = 4;

// The share of the peer's window after which an acknowledgement does not wait for ack_after.
constexpr std::size_t ack_share = 8;

std::size_t cost(const message& m) { return m.payload.size() + overhead_bytes; }

}  // namespace

conversation::conversation(conversation_settings settings) : settings_(std::move(settings)) {
  ensure(settings_.max_unacknowledged_frames > 0, "a conversation without a window says nothing");
}

status conversation::send(generation plan, bytes payload, nanoseconds now) {
  ensure(payload.size() <= max_message_bytes, "a message is longer than a frame can be");
  message m{plan, std::move(payload)};
  if (queued_bytes_ + cost(m) > settings_.max_queued_bytes) {
    return error{exit_code::io,
                 fmt::format("{} messages ({} bytes) already wait for member {}, which does not "
                             "acknowledge them: a further one of {} bytes would exceed {} bytes",
                             unacknowledged_.size(), queued_bytes_, settings_.peer.value,
                             m.payload.size(), settings_.max_queued_bytes)};
  }
  queued_bytes_ += cost(m);
  last_plan_ = plan;
  unacknowledged_.push_back(std::move(m));
  ++counters_.sent;
  ready_since_ = now;
  return done{};
}

received conversation::receive(bytes_view frame, nanoseconds now) {
  auto read = decode(frame);
  if (read) return receive(*std::move(read), now);
  ++counters_.refused;
  return {.messages = {}, .refused = read.failure().message};
}

received conversation::receive(envelope frame, nanoseconds now) {
  received r;
  if (auto why = reason_to_refuse(frame)) {
    ++counters_.refused;
    r.refused = *std::move(why);
    return r;
  }
  take_acknowledgement(frame.acknowledged, now);
  if (frame.kind == frame_kind::data) take_data(std::move(frame), now, r.messages);
  return r;
}

std::optional<std::string> conversation::reason_to_refuse(const envelope& f) const {
  const conversation_settings& s = settings_;
  if (f.run_id != s.run_id) {
    return fmt::format("a frame of run \"{}\" came to run \"{}\"", f.run_id, s.run_id);
  }
  if (f.from != s.peer || f.to != s.self) {
    return fmt::format("a frame from member {} to {} came into the conversation of {} and {}",
                       f.from.value, f.to.value, s.peer.value, s.self.value);
  }
  if (f.from_life != s.peer_life) {
    return fmt::format("a frame of member {}'s life {} came, known is its life {}", f.from.value,
                       f.from_life.value, s.peer_life.value);
  }
  if (f.to_life != s.self_life) {
    return fmt::format("a frame for member {}'s life {} came, this is its life {}", f.to.value,
                       f.to_life.value, s.self_life.value);
  }
  if (f.kind == frame_kind::handshake) return "a handshake came into a conversation";
  if (f.acknowledged > ever_sent_) {
    return fmt::format("member {} acknowledges message {}, but only {} were sent", f.from.value,
                       f.acknowledged, ever_sent_);
  }
  if (f.kind == frame_kind::data && f.sequence == 0) return "a message came without a number";
  return std::nullopt;
}

void conversation::take_acknowledgement(std::uint64_t upto, nanoseconds now) {
  if (upto < first_) return;
  for (; first_ <= upto; ++first_) {
    const std::size_t size = cost(unacknowledged_.front());
    queued_bytes_ -= size;
    if (first_ < next_) under_way_bytes_ -= size;
    unacknowledged_.pop_front();
  }
  next_ = std::max(next_, first_);
  silent_rounds_ = 0;
  resend_at_.reset();
  if (next_ > first_) resend_at_ = now + pause();
  ready_since_ = now;
}

void conversation::take_data(envelope f, nanoseconds now, std::vector<message>& into) {
  if (f.sequence < expected_ || early_.contains(f.sequence)) {
    ++counters_.duplicates;
    want_ack_by(now);  // the peer has not heard of it
    return;
  }
  message m{f.plan, std::move(f.payload)};
  if (f.sequence > expected_) {
    const bool near = f.sequence - expected_ < settings_.max_unacknowledged_frames;
    if (!near || early_bytes_ + cost(m) > settings_.max_unacknowledged_bytes) {
      ++counters_.too_early;
      return;
    }
    early_bytes_ += cost(m);
    early_.emplace(f.sequence, std::move(m));
    return;
  }
  const auto deliver = [&](message next) {
    ++expected_;
    ++unanswered_frames_;
    unanswered_bytes_ += cost(next);
    into.push_back(std::move(next));
  };
  deliver(std::move(m));
  while (!early_.empty() && early_.begin()->first == expected_) {
    auto next = early_.extract(early_.begin());
    early_bytes_ -= cost(next.mapped());
    deliver(std::move(next.mapped()));
  }
  counters_.delivered += into.size();
  const bool many = unanswered_frames_ >= settings_.max_unacknowledged_frames / ack_share ||
                    unanswered_bytes_ >= settings_.max_unacknowledged_bytes / ack_share;
  want_ack_by(many ? now : now + settings_.ack_after);
}

void conversation::want_ack_by(nanoseconds when) {
  ack_due_ = ack_due_ ? std::min(*ack_due_, when) : when;
}

void conversation::link_up(nanoseconds now) {
  linked_ = true;
  next_ = first_;
  under_way_bytes_ = 0;
  silent_rounds_ = 0;
  resend_at_.reset();
  ready_since_ = now;
  // What was said about the last messages may have been lost with the old link.
  if (expected_ > 1) want_ack_by(now);
}

void conversation::link_down() { linked_ = false; }

bool conversation::may_go_out() const {
  const std::size_t under_way = next_ - first_;
  if (under_way == unacknowledged_.size()) return false;
  if (under_way == 0) return true;
  return under_way < settings_.max_unacknowledged_frames &&
         under_way_bytes_ + cost(unacknowledged_[under_way]) <= settings_.max_unacknowledged_bytes;
}

nanoseconds conversation::pause() const {
  return settings_.resend_after * (1u << std::min(silent_rounds_, max_doublings));
}

std::vector<bytes> conversation::take_frames(nanoseconds now) {
  std::vector<bytes> frames;
  if (!linked_) return frames;
  if (resend_at_ && *resend_at_ <= now) {
    std::size_t total = 0;
    const std::uint64_t end = std::min<std::uint64_t>(next_, first_ + resend_frames);
    for (std::uint64_t s = first_; s < end && (s == first_ || total < resend_bytes); ++s) {
      frames.push_back(encode_data(s));
      total += frames.back().size();
    }
    ++silent_rounds_;
    resend_at_ = now + pause();
  }
  while (may_go_out()) {
    frames.push_back(encode_data(next_));
    under_way_bytes_ += cost(unacknowledged_[next_ - first_]);
    ++next_;
    if (!resend_at_) resend_at_ = now + pause();
  }
  if (ack_due_ && frames.empty() && *ack_due_ <= now) {
    ++counters_.acks_alone;
    frames.push_back(encode({.run_id = settings_.run_id,
                             .plan = last_plan_,
                             .from = settings_.self,
                             .to = settings_.peer,
                             .from_life = settings_.self_life,
                             .to_life = settings_.peer_life,
                             .sequence = 0,
                             .acknowledged = expected_ - 1,
                             .kind = frame_kind::ack_only,
                             .payload = {}}));
  }
  if (!frames.empty()) {
    ack_due_.reset();
    unanswered_frames_ = unanswered_bytes_ = 0;
  }
  return frames;
}

bytes conversation::encode_data(std::uint64_t sequence) {
  if (sequence <= ever_sent_) ++counters_.resent;
  ever_sent_ = std::max(ever_sent_, sequence);
  const message& m = unacknowledged_[sequence - first_];
  return encode({.run_id = settings_.run_id,
                 .plan = m.plan,
                 .from = settings_.self,
                 .to = settings_.peer,
                 .from_life = settings_.self_life,
                 .to_life = settings_.peer_life,
                 .sequence = sequence,
                 .acknowledged = expected_ - 1,
                 .kind = frame_kind::data,
                 .payload = {}},
                m.payload);
}

std::optional<nanoseconds> conversation::next_deadline() const {
  if (!linked_) return std::nullopt;
  std::optional<nanoseconds> next = ack_due_;
  const auto earlier = [&](nanoseconds when) { next = next ? std::min(*next, when) : when; };
  if (resend_at_) earlier(*resend_at_);
  if (may_go_out()) earlier(ready_since_);
  return next;
}

}  // namespace troupe::comm
