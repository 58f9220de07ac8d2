#include "comm/control_filter.hpp"

#include <algorithm>
#include <utility>

#include "comm/wire/handshake_message.hpp"

namespace troupe::comm {
namespace {

// What was said before is kept for replays, as far as it is short.
constexpr std::size_t kept_frames = 256, kept_bytes = 16 << 10;

}  // namespace

link_id control_filter::connect(const address& to) {
  const link_id link = inner_.connect(to);
  if (const auto known = at_address_.find(to_text(to)); known != at_address_.end()) {
    peers_[link] = known->second;
  } else {
    dialled_[link] = to_text(to);
  }
  return link;
}

void control_filter::send(link_id link, bytes frame) {
  const result<envelope> what = decode(frame);
  if (what) learn(link, what->to, *what, false);
  const std::optional<member_id> to = peer_of(link);
  message_fate fate;
  if (!shared_.faults.idle()) {
    const bool data = what && what->kind == frame_kind::data;
    const std::string name = data ? shared_.name_of(message_plane::control, what->payload) : "";
    fate = shared_.faults.decide(message_plane::control, to, name, frame.size());
  }
  if (fate.replay) replay(link, to, what ? what->plan : generation());
  if (what && what->kind == frame_kind::data && to) keep(*to, what->plan, frame);
  if (fate.lost) return;
  flip(frame, fate.flipped);
  if (fate.again) put(link, fate, frame);
  put(link, fate, std::move(frame));
}

void control_filter::close(link_id link) {
  // What is only late is still delivered; a cut holds it for ever.
  if (const auto waiting = held_.find(link); waiting != held_.end()) {
    if (!shared_.faults.cuts(message_plane::control, peer_of(link))) {
      for (held& h : waiting->second) inner_.send(link, std::move(h.frame));
    }
  }
  forget(link);
  inner_.close(link);
}

void control_filter::link_opened(link_id link, bool we_connected) {
  handler_->link_opened(link, we_connected);
}

void control_filter::frame_received(link_id link, bytes_view frame) {
  if (!peers_.contains(link)) {
    if (const result<envelope> what = decode(frame)) learn(link, what->from, *what, true);
  }
  handler_->frame_received(link, frame);
}

void control_filter::link_closed(link_id link, const std::string& why) {
  forget(link);
  handler_->link_closed(link, why);
}

bool control_filter::release() {
  bool any = false;
  for (auto& [link, waiting] : held_) {
    if (waiting.empty() || shared_.faults.cuts(message_plane::control, peer_of(link))) continue;
    bool stalled = false;
    std::deque<held> rest;
    for (held& h : waiting) {
      const bool due = h.due <= shared_.now();
      if (!h.overtaken) stalled |= !due;
      if (due && (h.overtaken || !stalled)) {
        inner_.send(link, std::move(h.frame));
        any = true;
      } else {
        rest.push_back(std::move(h));
      }
    }
    waiting = std::move(rest);
  }
  return any;
}

std::optional<time_since_start> control_filter::next_due() const {
  std::optional<time_since_start> next;
  for (const auto& [link, waiting] : held_) {
    if (waiting.empty() || shared_.faults.cuts(message_plane::control, peer_of(link))) continue;
    for (const held& h : waiting) next = next ? std::min(*next, h.due) : h.due;
  }
  return next;
}

std::optional<member_id> control_filter::peer_of(link_id link) const {
  const auto found = peers_.find(link);
  return found == peers_.end() ? std::nullopt : std::optional(found->second);
}

void control_filter::learn(link_id link, member_id other, const envelope& what, bool theirs) {
  if (what.kind == frame_kind::handshake) {
    if (!theirs) return;  // to whom, nobody knows before the answer
    const auto hello = decode_handshake(what.payload);
    const bool named = hello && (hello->what == handshake_message::type::hello ||
                                 hello->what == handshake_message::type::challenge);
    if (!named || !hello->who.wish) return;
    other = *hello->who.wish;
    at_address_[hello->who.address] = other;
  }
  if (peers_.insert_or_assign(link, other).second) {
    if (const auto at = dialled_.find(link); at != dialled_.end()) {
      at_address_[at->second] = other;
      dialled_.erase(at);
    }
  }
}

void control_filter::keep(member_id to, generation plan, const bytes& frame) {
  if (frame.size() > kept_bytes) return;
  std::deque<said>& all = said_[to];
  all.push_back({plan, frame});
  if (all.size() > kept_frames) all.pop_front();
}

void control_filter::replay(link_id link, std::optional<member_id> to, generation plan) {
  std::deque<said>* all = to ? &said_[*to] : nullptr;
  if (all == nullptr || all->empty() || all->front().plan >= plan) {
    return shared_.faults.nothing_to_replay(to);
  }
  put(link, {}, std::move(all->front().frame));
  all->pop_front();
}

void control_filter::put(link_id link, const message_fate& fate, bytes frame) {
  const auto waiting = held_.find(link);
  const bool behind =
      waiting != held_.end() &&
      std::ranges::any_of(waiting->second, [](const held& h) { return !h.overtaken; });
  if (!fate.cut && fate.late.count() == 0 && !behind) {
    return inner_.send(link, std::move(frame));
  }
  const time_since_start due = shared_.now() + fate.late;
  held_[link].push_back({due, fate.overtaken, std::move(frame)});
  if (!fate.cut) shared_.will_be_due(due);
}

void control_filter::forget(link_id link) {
  held_.erase(link);
  peers_.erase(link);
  dialled_.erase(link);
}

}  // namespace troupe::comm
