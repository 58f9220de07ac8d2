// The state behind simulated_transport.hpp, shared by the network and what it handed out: who
// exists, which links and lanes there are, and what is under way.
//
// Everything that happens is an event. It waits in one queue until its time, then in its receiver's
// inbox until progress(), or aside while a cut or a stopped process holds it. Links and lanes are
// numbered and never removed, so an event that outlives its link finds a closed one, not another.
#pragma once

#include <deque>
#include <map>
#include <utility>

#include "comm/simulated_transport.hpp"
#include "comm/timed_queue.hpp"

namespace troupe::comm {

struct simulated_event {
  enum class kind : std::uint8_t {
    connect_request,
    connect_accepted,
    frame,
    closed,  // by the peer, or by what happened to the link
    bulk_announced,
    bulk_data,
    bulk_sent,
    give_up_connecting,  // the last two are the network's own and reach nobody
    cut_noticed,
  };
  struct bulk_part {
    std::uint32_t from_lane = 0, to_lane = 0;
    std::uint64_t token = 0;
    bytes copy;         // small messages
    bytes_view source;  // large ones: the sender's memory
    std::span<std::byte> target;
    std::optional<std::uint64_t> damaged_bit;
    bytes_view payload() const { return source.empty() ? bytes_view(copy) : source; }
  };

  kind what = kind::frame;
  process_id from, to;
  std::uint64_t sent = 0;  // by which message of all; what the network itself does has none
  std::uint64_t link = 0;  // the receiver's end; cut_noticed: the number of the cut
  bytes data;              // a frame, or a bulk message's header
  std::string why;
  std::unique_ptr<bulk_part> bulk;
};

// What a lane's local_address() is.
bytes lane_address(std::uint32_t lane);

class simulated_core {
 public:
  using nanoseconds = std::chrono::nanoseconds;
  using pair = std::pair<process_id, process_id>;

  simulated_core(std::uint64_t seed, const network_conditions& usual)
      : seed_(seed), usual_(usual) {}

  // --- the network's owner (simulated_core.cpp)
  process_id add_process(std::string host);
  nanoseconds now() const { return now_; }
  std::optional<nanoseconds> next_event() const;
  void advance_to(nanoseconds when);
  std::vector<process_id> take_ready();
  void cut(process_id from, process_id to, std::optional<nanoseconds> noticed_after);
  void cut_behind(process_id from, process_id to);
  void heal(process_id from, process_id to);
  void heal_all();
  void reset_links(process_id a, process_id b, const std::string& why);
  void kill(process_id which, std::optional<nanoseconds> noticed_after);
  void stop(process_id which);
  void continue_process(process_id which);

  // --- one process's transport (simulated_lanes.cpp)
  void start(process_id who, control_handler& handler);
  bool progress(process_id who);
  const address& local_address(process_id who) const { return process_of(who).local; }
  const traffic& sent(process_id who) const { return process_of(who).sent; }
  link_id connect(process_id who, const address& to);
  void send_frame(process_id who, link_id link, bytes frame);
  void close(process_id who, link_id link);
  std::uint32_t open_lane(process_id who, bulk_handler& handler);
  void close_lane(std::uint32_t lane);
  status connect_lane(std::uint32_t lane, member_id to, bytes_view address);
  void send_bulk(std::uint32_t lane, member_id to, bytes_view header, bytes_view payload,
                 std::uint64_t token);

  // What the owner sets.
  network_conditions usual_conditions() const { return usual_; }
  void set_usual(const network_conditions& usual) { usual_ = usual; }
  void set_special(pair which, const network_conditions& special) { special_[which] = special; }
  void set_filter(frame_filter filter) { filter_ = std::move(filter); }
  void set_connect_timeout(nanoseconds timeout) { connect_timeout_ = timeout; }
  const network_counters& counters() const { return counters_; }
  std::size_t open_links(process_id of) const;

 private:
  using kind = simulated_event::kind;
  enum class end_state : std::uint8_t { opening, open, closed };
  struct link_end {
    process_id process;
    end_state state = end_state::opening;
    nanoseconds last_arrival{};  // of what is under way to here
    std::uint64_t random = 0;    // for what is sent from here
  };
  // ends[0] connected to ends[1]. Its ends are called 2 n and 2 n + 1, from n = 1.
  struct connection {
    link_end ends[2];
    nanoseconds begun{};
  };
  struct process_state {
    address local;
    control_handler* handler = nullptr;
    bool dead = false, noticed = true, stopped = false, announced = false;
    std::deque<simulated_event> inbox;
    std::vector<simulated_event> paused;  // out of a stopped process
    std::vector<std::uint64_t> connections;
    std::vector<std::uint32_t> lanes;
    traffic sent;
  };
  struct lane_state {
    process_id owner;
    bulk_handler* handler = nullptr;  // nothing: ended
    std::map<member_id, std::uint32_t> peers;
    nanoseconds busy_until{};
    std::uint64_t random = 0;
  };
  struct cut_state {
    std::uint64_t number = 0;
    std::uint64_t behind = 0;  // what was sent before this message passes
    std::deque<simulated_event> held;
  };

  process_state& process_of(process_id p) { return processes_[p.value]; }
  const process_state& process_of(process_id p) const { return processes_[p.value]; }
  connection& connection_of(std::uint64_t link) { return connections_[link / 2 - 1]; }
  link_end& end_of(std::uint64_t link) { return connection_of(link).ends[link % 2]; }
  link_end& own_end(process_id who, link_id link);
  const network_conditions& between(process_id from, process_id to) const;

  void put(simulated_event e);
  void announce(process_id who);
  void arrive(simulated_event e);
  void arrive_at_dead(const simulated_event& e);
  void give_up_later(std::uint64_t connector);
  void notice(const simulated_event& e);
  void break_link(std::uint64_t link, const std::string& why);
  simulated_event link_event(kind what, std::uint64_t receiver);
  void send_on_link(simulated_event e);

  void dispatch(process_state& who, simulated_event e);
  void send_with_faults(simulated_event e, link_end& from, const network_conditions& c);
  void announce_bulk(simulated_event e);
  void finish_bulk(simulated_event e);
  void tell_sent(const simulated_event::bulk_part& part);

  std::uint64_t seed_;
  network_conditions usual_;
  std::map<pair, network_conditions> special_;
  frame_filter filter_;
  nanoseconds connect_timeout_ = std::chrono::seconds(5);
  nanoseconds now_{};
  timed_queue<simulated_event> queue_;
  std::deque<process_state> processes_;
  std::map<address, process_id> names_;
  std::deque<connection> connections_;
  std::deque<lane_state> lanes_;
  std::map<pair, cut_state> cuts_;
  std::uint64_t cuts_made_ = 0, messages_ = 0;
  std::vector<process_id> ready_;
  network_counters counters_;
};

}  // namespace troupe::comm
