#include "actors/introductions.hpp"

#include <fmt/format.h>

#include <vector>

namespace troupe::actors {

introductions::introductions(comm::transport& over, const clock_source& clock,
                             const introductions_settings& settings)
    : over_(over), clock_(clock), settings_(settings) {}

comm::link_id introductions::connect(const comm::address& to) {
  const comm::link_id link = over_.control().connect(to);
  strangers_[link] = {.talk = {},
                      .we_connected = true,
                      .until = clock_.now() + settings_.patience,
                      .at = comm::to_text(to)};
  return link;
}

bool introductions::keep(comm::link_id link, member_id who, caf::actor peer) {
  const auto early = early_.find(link);
  if (early == early_.end()) return false;
  known_[link] = {who, std::move(peer)};
  heard_[who] = clock_.now();
  for (comm::bytes& frame : early->second) {
    caf::anon_send(known_[link].peer, peer_frame{std::move(frame)});
  }
  early_.erase(early);
  return true;
}

void introductions::close(comm::link_id link) {
  strangers_.erase(link);
  known_.erase(link);
  early_.erase(link);
  over_.control().close(link);
}

void introductions::close_all() {
  ended_ = true;
  for (const auto& [link, s] : strangers_) over_.control().close(link);
  for (const auto& [link, k] : known_) over_.control().close(link);
  for (const auto& [link, frames] : early_) over_.control().close(link);
  strangers_.clear();
  known_.clear();
  early_.clear();
}

std::optional<time_since_start> introductions::last_heard(member_id who) const {
  const auto it = heard_.find(who);
  if (it == heard_.end()) return std::nullopt;
  return it->second;
}

void introductions::give_up_silent() {
  std::vector<std::pair<comm::link_id, std::string>> silent;
  for (const auto& [link, s] : strangers_) {
    if (s.until <= clock_.now()) silent.emplace_back(link, s.at.empty() ? "a visitor" : s.at);
  }
  const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(settings_.patience);
  for (const auto& [link, at] : silent) {
    turn_away(link,
              fmt::format("nothing was heard of {} for {} ms (comm.handshake_seconds); is it a "
                          "member of this run that listens there?",
                          at, patience.count()),
              false);
  }
}

// The link is of no use. Whoever dialled it is told why.
void introductions::turn_away(comm::link_id link, const std::string& why, bool refused,
                              bool garbled) {
  const auto it = strangers_.find(link);
  if (it == strangers_.end()) return;
  const bool ours = it->second.we_connected, reached = it->second.talk.has_value();
  strangers_.erase(it);
  over_.control().close(link);
  ++refused_;
  if (ours) {
    caf::anon_send(worker_, not_introduced{link, why, refused && !garbled, reached});
  } else if (refused) {
    caf::anon_send(worker_, visitor_refused{why});
  }
}

void introductions::link_opened(comm::link_id link, bool we_connected) {
  if (!we_connected) {
    if (ended_ || strangers_.size() >= settings_.most_strangers) {
      return over_.control().close(link);
    }
    strangers_[link].until = clock_.now() + settings_.patience;
  }
  const auto it = strangers_.find(link);
  if (it == strangers_.end()) return;  // given up meanwhile
  it->second.talk.emplace(
      we_connected ? comm::handshake::role::connector : comm::handshake::role::acceptor,
      settings_.me, settings_.key, settings_.number(),
      [this](const comm::facts& who) { return admit_ ? admit_(who) : std::nullopt; });
  if (we_connected) over_.control().send(link, it->second.talk->start());
}

void introductions::frame_received(comm::link_id link, comm::bytes_view frame) {
  if (const auto met = known_.find(link); met != known_.end()) {
    heard_[met->second.who] = clock_.now();
    caf::anon_send(met->second.peer, peer_frame{{frame.begin(), frame.end()}});
    return;
  }
  if (const auto early = early_.find(link); early != early_.end()) {
    early->second.emplace_back(frame.begin(), frame.end());
    return;
  }
  const auto it = strangers_.find(link);
  if (it == strangers_.end() || !it->second.talk) return;
  comm::handshake::step step = it->second.talk->receive(frame);
  if (step.reply) over_.control().send(link, std::move(*step.reply));
  if (!step.refused.empty()) return turn_away(link, step.refused, true, step.garbled);
  if (!step.accepted) return;
  early_[link];  // what comes before the worker has made up its mind
  caf::anon_send(worker_, introduced{link, it->second.talk->theirs(), it->second.we_connected});
  strangers_.erase(it);
}

void introductions::link_closed(comm::link_id link, const std::string& why) {
  early_.erase(link);
  if (const auto met = known_.find(link); met != known_.end()) {
    const member_id who = met->second.who;
    known_.erase(met);
    caf::anon_send(worker_, link_ended{link, who, why});
    return;
  }
  const auto it = strangers_.find(link);
  if (it == strangers_.end()) return;
  const bool ours = it->second.we_connected, reached = it->second.talk.has_value();
  strangers_.erase(it);
  if (ours) caf::anon_send(worker_, not_introduced{link, why, false, reached});
}

}  // namespace troupe::actors
