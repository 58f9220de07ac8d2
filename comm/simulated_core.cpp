#include "comm/simulated_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace troupe::comm {

process_id simulated_core::add_process(std::string host) {
  const process_id id(static_cast<std::uint32_t>(processes_.size()));
  constexpr std::uint32_t first_port = 10000;
  ensure(id.value <= UINT16_MAX - first_port, "a simulated network has no port left");
  process_state& p = processes_.emplace_back();
  p.local = {std::move(host), static_cast<std::uint16_t>(first_port + id.value)};
  names_.emplace(p.local, id);
  return id;
}

// --- time

std::optional<std::chrono::nanoseconds> simulated_core::next_event() const {
  if (!ready_.empty()) return now_;
  if (queue_.empty()) return std::nullopt;
  return queue_.next_time();
}

void simulated_core::advance_to(nanoseconds when) {
  ensure(when >= now_, "virtual time does not go back");
  while (!queue_.empty() && queue_.next_time() <= when) {
    now_ = std::max(now_, queue_.next_time());
    arrive(queue_.pop());
  }
  now_ = when;
}

std::vector<process_id> simulated_core::take_ready() {
  for (const process_id p : ready_) process_of(p).announced = false;
  return std::exchange(ready_, {});
}

void simulated_core::announce(process_id who) {
  process_state& p = process_of(who);
  if (p.announced || p.stopped || p.handler == nullptr || p.inbox.empty()) return;
  p.announced = true;
  ready_.push_back(who);
}

void simulated_core::put(simulated_event e) {
  process_state& p = process_of(e.to);
  if (p.dead) return;
  const process_id who = e.to;
  p.inbox.push_back(std::move(e));
  announce(who);
}

// What was under way is there, unless somebody holds it or nobody is there any more.
void simulated_core::arrive(simulated_event e) {
  if (e.what == kind::give_up_connecting || e.what == kind::cut_noticed) return notice(e);
  const bool connecting = e.what == kind::connect_request || e.what == kind::connect_accepted;
  if (!cuts_.empty()) {
    const auto cut = cuts_.find({e.from, e.to});
    if (cut != cuts_.end() && (e.sent == 0 || e.sent > cut->second.behind)) {
      ++counters_.held;
      if (connecting) give_up_later(e.link & ~std::uint64_t{1});
      cut->second.held.push_back(std::move(e));
      return;
    }
  }
  if (process_of(e.to).dead) return arrive_at_dead(e);
  if (e.what == kind::bulk_data && process_of(e.from).stopped) {
    process_of(e.from).paused.push_back(std::move(e));
    return;
  }
  if (e.what == kind::connect_request && process_of(e.to).stopped) give_up_later(e.link ^ 1);
  put(std::move(e));
}

void simulated_core::arrive_at_dead(const simulated_event& e) {
  if (e.what != kind::connect_request) return;
  if (!process_of(e.to).noticed) return give_up_later(e.link ^ 1);
  simulated_event refusal = link_event(kind::closed, e.link ^ 1);
  refusal.why = fmt::format("{} refused the connection", to_text(process_of(e.to).local));
  send_on_link(std::move(refusal));
}

void simulated_core::give_up_later(std::uint64_t connector) {
  simulated_event e = link_event(kind::give_up_connecting, connector);
  queue_.push(std::max(now_, connection_of(connector).begun + connect_timeout_), std::move(e));
}

void simulated_core::notice(const simulated_event& e) {
  if (e.what == kind::give_up_connecting) {
    if (end_of(e.link).state != end_state::opening) return;
    break_link(e.link, fmt::format("{} gave no answer within {} ms",
                                   to_text(process_of(end_of(e.link ^ 1).process).local),
                                   connect_timeout_ / std::chrono::milliseconds(1)));
    // The other side may have accepted meanwhile.
    send_on_link(link_event(kind::closed, e.link ^ 1));
    return;
  }
  const auto cut = cuts_.find({e.from, e.to});
  if (cut == cuts_.end() || cut->second.number != e.link) return;
  reset_links(e.from, e.to, "no answer from");
}

// --- links

simulated_event simulated_core::link_event(kind what, std::uint64_t receiver) {
  simulated_event e;
  e.what = what;
  e.link = receiver;
  e.from = end_of(receiver ^ 1).process;
  e.to = end_of(receiver).process;
  if (what == kind::closed) e.why = to_text(process_of(e.from).local) + " closed the connection";
  return e;
}

// In order after everything that is under way to this end.
void simulated_core::send_on_link(simulated_event e) {
  link_end& to = end_of(e.link);
  to.last_arrival = std::max(now_ + between(e.from, e.to).latency, to.last_arrival);
  const nanoseconds at = to.last_arrival;
  queue_.push(at, std::move(e));
}

// This end learns, without the network, that the link is no more.
void simulated_core::break_link(std::uint64_t link, const std::string& why) {
  simulated_event e = link_event(kind::closed, link);
  e.why = why;
  put(std::move(e));
}

void simulated_core::reset_links(process_id a, process_id b, const std::string& why) {
  std::erase_if(process_of(a).connections, [&](std::uint64_t first) {
    return end_of(first).state == end_state::closed && end_of(first + 1).state == end_state::closed;
  });
  for (const std::uint64_t first : process_of(a).connections) {
    const process_id one = end_of(first).process, two = end_of(first + 1).process;
    if (one != b && two != b) continue;
    for (const std::uint64_t link : {first, first + 1}) {
      const process_id peer = end_of(link ^ 1).process;
      break_link(link, fmt::format("{} {}", why, to_text(process_of(peer).local)));
    }
  }
}

std::size_t simulated_core::open_links(process_id of) const {
  std::size_t open = 0;
  for (const std::uint64_t first : process_of(of).connections) {
    const connection& c = connections_[first / 2 - 1];
    const auto [dialled, answered] = std::tie(c.ends[0], c.ends[1]);
    // A request that was not answered yet is the other side's.
    if (dialled.process == of && dialled.state != end_state::closed) ++open;
    if (answered.process == of && answered.state == end_state::open) ++open;
  }
  return open;
}

const network_conditions& simulated_core::between(process_id from, process_id to) const {
  if (special_.empty()) return usual_;
  const auto found = special_.find({from, to});
  return found == special_.end() ? usual_ : found->second;
}

// --- faults

void simulated_core::cut(process_id from, process_id to, std::optional<nanoseconds> noticed_after) {
  if (from == to) return;
  cut_state& made = cuts_[{from, to}];
  made.number = ++cuts_made_;
  made.behind = 0;
  if (!noticed_after) return;
  simulated_event e;
  e.what = kind::cut_noticed;
  e.from = from;
  e.to = to;
  e.link = made.number;
  queue_.push(now_ + *noticed_after, std::move(e));
}

void simulated_core::cut_behind(process_id from, process_id to) {
  cut(from, to, {});
  if (from != to) cuts_[{from, to}].behind = messages_;
}

void simulated_core::heal(process_id from, process_id to) {
  const auto found = cuts_.find({from, to});
  if (found == cuts_.end()) return;
  std::deque<simulated_event> held = std::move(found->second.held);
  cuts_.erase(found);
  for (simulated_event& e : held) arrive(std::move(e));
}

void simulated_core::heal_all() {
  while (!cuts_.empty()) heal(cuts_.begin()->first.first, cuts_.begin()->first.second);
}

void simulated_core::kill(process_id which, std::optional<nanoseconds> noticed_after) {
  process_state& p = process_of(which);
  if (p.dead) return;
  p.dead = true;
  p.noticed = noticed_after.has_value();
  p.handler = nullptr;
  p.inbox.clear();
  p.paused.clear();
  std::erase(ready_, which);
  for (const std::uint32_t lane : p.lanes) close_lane(lane);
  for (const std::uint64_t first : p.connections) {
    for (const std::uint64_t link : {first, first + 1}) {
      if (end_of(link).process != which || end_of(link).state == end_state::closed) continue;
      end_of(link).state = end_state::closed;
      if (!noticed_after) continue;
      simulated_event e = link_event(kind::closed, link ^ 1);
      nanoseconds& last = end_of(link ^ 1).last_arrival;
      last = std::max(now_ + *noticed_after, last);
      const nanoseconds at = last;
      queue_.push(at, std::move(e));
    }
  }
}

void simulated_core::stop(process_id which) {
  process_of(which).stopped = true;
  process_of(which).announced = false;
  std::erase(ready_, which);
}

void simulated_core::continue_process(process_id which) {
  process_state& p = process_of(which);
  if (!p.stopped) return;
  p.stopped = false;
  for (simulated_event& e : std::exchange(p.paused, {})) arrive(std::move(e));
  announce(which);
}

}  // namespace troupe::comm
