// What one process asks of the simulated network and what it is told: the second half of
// simulated_core.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/simulated_core.hpp"
#include "config/base/mixing.hpp"

namespace troupe::comm {
namespace {

// Bulk messages up to here are copied when they are sent, as small ones are over shared memory.
constexpr std::size_t small_message = 8192;

// Tells a lane's address from anything else.
constexpr std::uint64_t address_mark = 0x656e616c2d6d6973;

// Every link end and lane has a stream of its own, so that what one of them does moves no other's
// luck.
double unit(std::uint64_t& state) { return static_cast<double>(next_mixed(state) >> 11) * 0x1p-53; }

bool chance(std::uint64_t& state, double p) { return p > 0 && unit(state) < p; }

std::chrono::nanoseconds up_to(std::uint64_t& state, std::chrono::nanoseconds most) {
  if (most.count() <= 0) return {};
  return std::chrono::nanoseconds(next_mixed(state) %
                                  (static_cast<std::uint64_t>(most.count()) + 1));
}

}  // namespace

void simulated_core::start(process_id who, control_handler& handler) {
  ensure(process_of(who).handler == nullptr, "a transport is started once");
  if (!process_of(who).dead) process_of(who).handler = &handler;
  announce(who);
}

bool simulated_core::progress(process_id who) {
  process_state& p = process_of(who);
  // Only what is there now: a handler's answer to itself comes with the next call.
  std::size_t count = p.handler == nullptr || p.stopped ? 0 : p.inbox.size();
  const bool any = count > 0;
  for (; count > 0 && !p.inbox.empty() && !p.stopped; --count) {
    simulated_event e = std::move(p.inbox.front());
    p.inbox.pop_front();
    dispatch(p, std::move(e));
  }
  announce(who);
  return any;
}

void simulated_core::dispatch(process_state& p, simulated_event e) {
  switch (e.what) {
    case kind::bulk_announced:
      return announce_bulk(std::move(e));
    case kind::bulk_data:
      return finish_bulk(std::move(e));
    case kind::bulk_sent:
      if (bulk_handler* handler = lanes_[e.bulk->from_lane].handler) handler->sent(e.bulk->token);
      return;
    default:
      break;
  }
  link_end& end = end_of(e.link);
  const link_id link{e.link};
  if (e.what == kind::frame) {
    if (end.state != end_state::open) return;
    ++counters_.frames;
    return p.handler->frame_received(link, e.data);
  }
  if (end.state == end_state::closed) return;
  if (e.what == kind::closed) {
    // The link may have ended before we heard that somebody connects.
    const bool known = end.state == end_state::open || e.link % 2 == 0;
    end.state = end_state::closed;
    if (!known) return;
    return p.handler->link_closed(link, e.why);
  }
  end.state = end_state::open;
  if (e.what == kind::connect_request) send_on_link(link_event(kind::connect_accepted, e.link ^ 1));
  p.handler->link_opened(link, e.what == kind::connect_accepted);
}

// --- control

link_id simulated_core::connect(process_id who, const address& to) {
  const std::uint64_t first = 2 * (connections_.size() + 1);
  connection& c = connections_.emplace_back();
  c.begun = now_;
  for (const std::uint64_t side : {0, 1}) {
    c.ends[side].process = who;
    c.ends[side].random = mixed(seed_ + mixed(first + side));
  }
  process_of(who).connections.push_back(first);
  const auto found = names_.find(to);
  if (found == names_.end()) {
    c.ends[1].state = end_state::closed;
    simulated_event refusal = link_event(kind::closed, first);
    refusal.why = fmt::format("nobody listens at {}", to_text(to));
    send_on_link(std::move(refusal));
    return link_id{first};
  }
  c.ends[1].process = found->second;
  if (found->second != who) process_of(found->second).connections.push_back(first);
  if (!process_of(who).dead) send_on_link(link_event(kind::connect_request, first + 1));
  return link_id{first};
}

simulated_core::link_end& simulated_core::own_end(process_id who, link_id link) {
  const auto number = static_cast<std::uint64_t>(link);
  ensure(number >= 2 && number / 2 <= connections_.size() && end_of(number).process == who,
         "a link was used that this process never had");
  return end_of(number);
}

void simulated_core::send_frame(process_id who, link_id link, bytes frame) {
  ensure(frame.size() <= max_frame_bytes, "a frame is longer than the lane allows");
  link_end& from = own_end(who, link);
  process_state& p = process_of(who);
  if (from.state == end_state::closed || p.dead) return;
  ++p.sent.control_frames;
  p.sent.control_bytes += frame.size();
  simulated_event e;
  e.what = kind::frame;
  e.link = static_cast<std::uint64_t>(link) ^ 1;
  e.from = who;
  e.to = end_of(e.link).process;
  e.data = std::move(frame);
  e.sent = ++messages_;
  if (p.stopped) return p.paused.push_back(std::move(e));
  const network_conditions& c = between(e.from, e.to);
  send_with_faults(std::move(e), from, c);
}

void simulated_core::send_with_faults(simulated_event e, link_end& from,
                                      const network_conditions& c) {
  const frame_fate fate = filter_ ? filter_(e.from, e.to, e.data) : frame_fate::pass;
  std::uint64_t& random = from.random;
  if (fate == frame_fate::lose || chance(random, c.lose)) {
    ++counters_.lost;
    return;
  }
  if (chance(random, c.damage) && !e.data.empty()) {
    ++counters_.damaged;
    const std::uint64_t bit = next_mixed(random) % (e.data.size() * 8);
    e.data[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
  nanoseconds at = now_ + c.latency + up_to(random, c.jitter);
  if (fate == frame_fate::repeat || chance(random, c.repeat)) {
    ++counters_.repeated;
    simulated_event again = link_event(kind::frame, e.link);
    again.data = e.data;
    queue_.push(at + up_to(random, c.late_by), std::move(again));
  }
  nanoseconds& last = end_of(e.link).last_arrival;
  if (fate == frame_fate::late || chance(random, c.reorder)) {
    ++counters_.reordered;
    at = std::max(at, last) + up_to(random, c.late_by);  // later ones may overtake it
  } else {
    at = last = std::max(at, last);
  }
  queue_.push(at, std::move(e));
}

void simulated_core::close(process_id who, link_id link) {
  link_end& end = own_end(who, link);
  if (end.state == end_state::closed) return;
  end.state = end_state::closed;
  const std::uint64_t other = static_cast<std::uint64_t>(link) ^ 1;
  if (!process_of(who).dead) send_on_link(link_event(kind::closed, other));
}

// --- bulk

std::uint32_t simulated_core::open_lane(process_id who, bulk_handler& handler) {
  const auto number = static_cast<std::uint32_t>(lanes_.size());
  lane_state& lane = lanes_.emplace_back();
  lane.owner = who;
  lane.handler = process_of(who).dead ? nullptr : &handler;
  lane.random = mixed(~seed_ + mixed(number));
  process_of(who).lanes.push_back(number);
  return number;
}

void simulated_core::close_lane(std::uint32_t number) {
  lanes_[number].handler = nullptr;
  lanes_[number].peers.clear();
}

bytes lane_address(std::uint32_t lane) {
  const std::uint64_t words[] = {lane, mixed(address_mark + lane)};
  const auto view = std::as_bytes(std::span(words));
  return {view.begin(), view.end()};
}

status simulated_core::connect_lane(std::uint32_t lane, member_id to, bytes_view address) {
  std::uint64_t words[2] = {};
  if (address.size() == sizeof words) std::memcpy(words, address.data(), sizeof words);
  if (words[1] != mixed(address_mark + words[0]) || words[0] >= lanes_.size()) {
    return error{exit_code::bad_data,
                 fmt::format("cannot reach member {} for bulk data: what it gave as its address "
                             "({} bytes) is none of this transport",
                             to.value, address.size())};
  }
  if (lanes_[lane].handler) lanes_[lane].peers[to] = static_cast<std::uint32_t>(words[0]);
  return done{};
}

void simulated_core::send_bulk(std::uint32_t number, member_id to, bytes_view header,
                               bytes_view payload, std::uint64_t token) {
  ensure(header.size() <= max_bulk_header_bytes, "a bulk header is longer than the lane allows");
  lane_state& lane = lanes_[number];
  if (!lane.handler) return;
  const auto peer = lane.peers.find(to);
  ensure(peer != lane.peers.end(), "bulk data for a member that the lane is not connected to");
  process_state& p = process_of(lane.owner);
  ++p.sent.bulk_messages;
  p.sent.bulk_bytes += header.size() + payload.size();

  simulated_event e;
  e.what = kind::bulk_announced;
  e.from = lane.owner;
  e.to = lanes_[peer->second].owner;
  e.data.assign(header.begin(), header.end());
  e.bulk = std::make_unique<simulated_event::bulk_part>();
  e.bulk->from_lane = number;
  e.bulk->to_lane = peer->second;
  e.bulk->token = token;
  if (payload.size() <= small_message) {
    e.bulk->copy.assign(payload.begin(), payload.end());
    tell_sent(*e.bulk);
  } else {
    e.bulk->source = payload;
  }
  e.sent = ++messages_;
  if (p.stopped) return p.paused.push_back(std::move(e));
  const network_conditions& c = between(e.from, e.to);
  if (chance(lane.random, c.bulk_lose)) {
    ++counters_.bulk_lost;
    if (!e.bulk->source.empty()) tell_sent(*e.bulk);
    return;
  }
  if (chance(lane.random, c.bulk_damage) && !payload.empty()) {
    e.bulk->damaged_bit = next_mixed(lane.random) % (payload.size() * 8);
  }
  nanoseconds begin = now_;
  if (c.bulk_bytes_per_second > 0) {
    begin = std::max(now_, lane.busy_until);
    const double seconds =
        static_cast<double>(payload.size()) / static_cast<double>(c.bulk_bytes_per_second);
    lane.busy_until = begin + nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
    begin = lane.busy_until;
  }
  queue_.push(begin + c.bulk_latency + up_to(lane.random, c.bulk_jitter), std::move(e));
}

void simulated_core::tell_sent(const simulated_event::bulk_part& part) {
  simulated_event e;
  e.what = kind::bulk_sent;
  e.from = e.to = lanes_[part.from_lane].owner;
  e.bulk = std::make_unique<simulated_event::bulk_part>();
  e.bulk->from_lane = part.from_lane;
  e.bulk->token = part.token;
  put(std::move(e));
}

void simulated_core::announce_bulk(simulated_event e) {
  bulk_handler* handler = lanes_[e.bulk->to_lane].handler;
  const bool large = !e.bulk->source.empty();
  if (!handler || (large && !lanes_[e.bulk->from_lane].handler)) {
    ++counters_.bulk_too_late;
    return;
  }
  const auto target = handler->place(e.data, e.bulk->payload().size());
  if (!target) {
    if (large && lanes_[e.bulk->from_lane].handler) tell_sent(*e.bulk);
    return;
  }
  ensure(target->size() == e.bulk->payload().size(), "bulk data was given a place of another size");
  e.bulk->target = *target;
  if (!large) return finish_bulk(std::move(e));
  e.what = kind::bulk_data;
  const nanoseconds latency = between(e.from, e.to).bulk_latency;
  queue_.push(now_ + latency, std::move(e));
}

void simulated_core::finish_bulk(simulated_event e) {
  simulated_event::bulk_part& part = *e.bulk;
  bulk_handler* handler = lanes_[part.to_lane].handler;
  const bool large = !part.source.empty();
  if (!handler || (large && !lanes_[part.from_lane].handler)) {
    ++counters_.bulk_too_late;
    return;
  }
  if (!part.target.empty()) {
    std::memcpy(part.target.data(), part.payload().data(), part.target.size());
  }
  if (part.damaged_bit) {
    ++counters_.bulk_damaged;
    part.target[*part.damaged_bit / 8] ^= static_cast<std::byte>(1 << *part.damaged_bit % 8);
  }
  if (large) tell_sent(part);
  ++counters_.bulk_messages;
  handler->arrived(e.data, part.target);
}

}  // namespace troupe::comm
