// Processes with a gate each (actors/introductions) on a simulated network, with an actor in the
// worker's place that writes down what it is told, and one in the peers'.
#pragma once

#include <fmt/format.h>

#include <caf/all.hpp>
#include <memory>
#include <string>
#include <vector>

#include "actors/introductions.hpp"
#include "actors/loop.hpp"
#include "comm/simulated_transport.hpp"

namespace troupe::tests {

inline comm::secret secret_of(std::uint8_t byte) {
  std::array<std::byte, comm::secret::size> bytes{};
  bytes.fill(std::byte{byte});
  return comm::secret(bytes);
}

inline comm::facts facts_of(std::uint32_t slot) {
  comm::facts f;
  f.run_id = "bard";
  f.build = "1.0";
  f.config_digest = "aaaa";
  f.numerics_class = "toy";
  f.slot = "worker-" + std::to_string(slot);
  f.wish = member_id(slot);
  f.life = incarnation(1);
  f.host = f.domain = "host-" + std::to_string(slot);
  return f;
}

// What an actor was told, in words.
struct notebook {
  std::vector<std::string> lines;
  std::vector<actors::introduced> met;
};

inline caf::behavior write_down(caf::event_based_actor*, notebook* book) {
  using namespace actors;
  return {
      [book](const introduced& m) {
        book->lines.push_back("met " + m.who.slot);
        book->met.push_back(m);
      },
      [book](const not_introduced& m) {
        book->lines.push_back((m.refused ? "refused: " : "not met: ") + m.why);
      },
      [book](const visitor_refused& m) { book->lines.push_back("visitor: " + m.why); },
      [book](const link_ended& m) {
        book->lines.push_back(fmt::format("lost {}: {}", m.who.value, m.why));
      },
      [book](const peer_frame& m) {
        book->lines.emplace_back(reinterpret_cast<const char*>(m.frame.data()), m.frame.size());
      },
  };
}

class gate_process {
 public:
  gate_process(comm::simulated_network::process process, const clock_source& clock,
               actors::introductions_settings settings)
      : id(process.id),
        way(std::move(process.transport)),
        run(clock),
        gate(*way, clock, with_numbers(std::move(settings), process.id.value)) {
    worker = run.system().spawn(write_down, &told);
    peer = run.system().spawn(write_down, &heard);
    gate.set_worker(worker);
    way->start(gate);
  }
  ~gate_process() {
    gate.set_worker({});
    for (const caf::actor& a : {worker, peer}) caf::anon_send_exit(a, caf::exit_reason::kill);
    while (run.run_ready()) {
    }
  }
  gate_process(const gate_process&) = delete;
  gate_process& operator=(const gate_process&) = delete;

  void keep_all() {
    for (const actors::introduced& m : told.met) (void)gate.keep(m.link, *m.who.wish, peer);
    told.met.clear();
  }

  comm::process_id id;
  std::unique_ptr<comm::transport> way;
  actors::loop run;
  actors::introductions gate;
  caf::actor worker, peer;
  notebook told, heard;
  bool asleep = false;  // its actors do not run, its transport does

 private:
  static actors::introductions_settings with_numbers(actors::introductions_settings s,
                                                     std::uint32_t seed) {
    s.number = [at = std::uint8_t{0}, seed]() mutable {
      comm::nonce n{};
      n[0] = static_cast<std::byte>(seed);
      n[1] = static_cast<std::byte>(++at);
      return n;
    };
    return s;
  }
};

class gate_world {
 public:
  explicit gate_world(std::uint64_t seed = 1) : network(seed) {}

  gate_process& add(actors::introductions_settings settings) {
    processes.push_back(
        std::make_unique<gate_process>(network.add_process(), clock, std::move(settings)));
    return *processes.back();
  }
  gate_process& add(std::uint32_t slot) {
    return add(actors::introductions_settings{.me = facts_of(slot), .key = secret_of(7)});
  }
  comm::address where(const gate_process& p) { return p.way->control().local_address(); }

  // Everything that happens within this time.
  void pass(std::chrono::nanoseconds time) {
    const time_since_start until = clock.now() + time;
    turn();
    for (auto next = network.next_event(); next && *next <= until; next = network.next_event()) {
      move_to(std::max(*next, clock.now()));
      turn();
    }
    move_to(until);
  }

  manual_clock clock;
  comm::simulated_network network;
  std::vector<std::unique_ptr<gate_process>> processes;
  // Processes of another kind, progressed with the others.
  std::vector<comm::transport*> strangers;

 private:
  void move_to(time_since_start to) {
    clock.advance(to - clock.now());
    network.advance_to(to);
  }
  void turn() {
    (void)network.take_ready();
    for (bool moved = true; moved;) {
      moved = false;
      for (comm::transport* s : strangers) moved |= s->progress();
      for (const auto& p : processes) {
        moved |= p->way->progress();
        if (!p->asleep) moved |= p->run.run_ready();
      }
    }
  }
};

}  // namespace troupe::tests
