// Processes that talk to each other in virtual time, in one thread, for tests and simulation: the
// same interface as the real transport, with a network below it that can be told to be late, to
// lose, repeat, reorder and damage, to be cut, and to lose or freeze a process. What happens
// follows from the seed and the order of calls alone.
//
// The owner's loop:
//   while (auto next = network.next_event()) {
//     network.advance_to(*next);
//     for (process_id p : network.take_ready()) transports[p]->progress();
//   }
// advance_to() only moves what is due to its receiver; handlers are called from progress(), as with
// a real network. wait() and wake() do nothing: who waits in virtual time is the owner.
//
// Faults imitate what a transport over TCP and shared memory does. A cut *holds* control frames, as
// TCP does, and delivers them in order when it heals, unless the cut is noticed before; losing
// frames on an open link is harsher than TCP and there to test what lies above. Large bulk messages
// are copied at their end, straight from the sender's memory, so they are lost if the sender's lane
// is gone by then, and a sender that changes a payload too early is found out; small ones are
// copied at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/transport.hpp"

namespace troupe::comm {

// One life of a simulated process, in the order of add_process() from 0.
using process_id = numbered<struct process_tag, std::uint32_t>;

// How it is between two processes, in one direction. Probabilities are per frame or message.
struct network_conditions {
  std::chrono::nanoseconds latency = std::chrono::microseconds(20);
  std::chrono::nanoseconds jitter{};  // up to this is added
  double lose = 0, repeat = 0, reorder = 0, damage = 0;
  std::chrono::nanoseconds late_by = std::chrono::milliseconds(50);  // repeated, reordered: up to
  std::chrono::nanoseconds bulk_latency = std::chrono::microseconds(5);
  std::chrono::nanoseconds bulk_jitter{};
  std::uint64_t bulk_bytes_per_second = 0;  // 0: without limit
  double bulk_lose = 0;                     // the sender is told that it was sent
  double bulk_damage = 0;                   // one bit of the payload arrives changed
};

// What a filter decides about one control frame, before chance does.
enum class frame_fate : std::uint8_t { pass, lose, repeat, late };
using frame_filter = std::function<frame_fate(process_id from, process_id to, bytes_view frame)>;

struct network_counters {
  std::uint64_t frames = 0, bulk_messages = 0;  // that reached a handler
  std::uint64_t lost = 0, repeated = 0, reordered = 0, damaged = 0, held = 0;
  std::uint64_t bulk_lost = 0, bulk_damaged = 0;
  std::uint64_t bulk_too_late = 0;  // came to, or from, a lane that had ended
};

class simulated_core;

class simulated_network {
 public:
  explicit simulated_network(std::uint64_t seed, const network_conditions& usual = {});
  ~simulated_network();
  simulated_network(const simulated_network&) = delete;
  simulated_network& operator=(const simulated_network&) = delete;

  struct process {
    process_id id;
    std::unique_ptr<comm::transport> transport;  // destroyed: the process ended, peers notice it
  };
  // A new process on a host; its port is its own.
  process add_process(std::string host = "127.0.0.1");

  std::chrono::nanoseconds now() const;
  // When something happens next: now() if a process has something to progress; nothing if all is
  // quiet, or only waits for a cut to heal or a process to be continued.
  std::optional<std::chrono::nanoseconds> next_event() const;
  void advance_to(std::chrono::nanoseconds when);
  // Who has something to progress, each once, in the order in which it came; the next call names
  // only who got something since.
  std::vector<process_id> take_ready();

  void set_conditions(const network_conditions& usual);
  void set_conditions(process_id from, process_id to, const network_conditions& special);
  void set_filter(frame_filter filter);

  // One direction; nothing passes until it is healed. If it is noticed, both ends of every link
  // between the two close after that time.
  void cut(process_id from, process_id to,
           std::optional<std::chrono::nanoseconds> noticed_after = {});
  // The same for what is sent from now on: what is under way still arrives.
  void cut_behind(process_id from, process_id to);
  void heal(process_id from, process_id to);
  void heal_all();
  // Both ends of every link between the two close now; what was under way is lost.
  void reset_links(process_id a, process_id b);

  // The process does nothing any more, and its memory may go. Its peers' links close after that
  // time, or never, as when a host loses its power.
  void kill(process_id which, std::optional<std::chrono::nanoseconds> noticed_after);
  // A stopped process progresses nothing; what comes to it waits, and so does what the call that
  // it was stopped in still sends.
  void stop(process_id which);
  void continue_process(process_id which);

  // Connections of which this process's end is not closed.
  std::size_t open_links(process_id of) const;

  // How long a connect() without an answer takes to fail.
  void set_connect_timeout(std::chrono::nanoseconds timeout);

  const network_counters& counters() const;

 private:
  std::shared_ptr<simulated_core> core_;
};

}  // namespace troupe::comm
