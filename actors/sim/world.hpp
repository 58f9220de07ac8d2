// A whole world of members in one thread and in virtual time: the product's actors over the
// simulated network, toy arithmetic and a store in memory. Everything that happens follows from the
// seed; a fingerprint of what happened tells two runs apart.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/member.hpp"
#include "actors/sim/memory_store.hpp"
#include "actors/sim/timeline.hpp"
#include "actors/sim/toy_computation.hpp"
#include "actors/sim/toy_reference.hpp"
#include "comm/secret.hpp"
#include "comm/simulated_transport.hpp"

namespace troupe::actors::sim {

struct world_settings {
  std::uint64_t seed = 1;
  std::uint32_t members = 4;
  std::uint32_t backups = 1;
  std::uint64_t steps = 10;
  toy_shape toy;
  comm::network_conditions network;
  std::uint64_t validation_freq = 0;
  std::uint32_t members_per_host = 1;
  // Whether cpu_seconds() is measured.
  bool measure = false;
  // Jobs of the device take that many times as long.
  std::uint32_t slowness = 1;
  // How often the links between two members, drawn by chance, are reset, and in which time.
  std::uint32_t resets = 0;
  std::chrono::nanoseconds resets_within = std::chrono::milliseconds(100);
  // How long a handshake may stay without an answer; a network that loses frames needs it short.
  std::chrono::nanoseconds patience = std::chrono::milliseconds(300);
};

// What the coordinator of a simulated world has in force.
reference_settings toy_reference_settings();

// How a member's parts are made; a test puts something wrong in their place.
struct world_parts {
  std::function<std::unique_ptr<toy_computation>(
      member_id, const toy_shape&, timeline&, const clock_source&, const toy_speed&,
      std::function<void(std::function<void()>)> post,
      std::function<void(std::uint64_t, std::uint32_t)> computed)>
      computation;
  // What stands between a member and the network; nothing: its transport itself.
  std::function<std::unique_ptr<comm::transport>(member_id, std::unique_ptr<comm::transport>)>
      transport;
  // Called with what each member is about to be started with.
  std::function<void(member_id, worker_settings&, introductions_settings&)> adjust =
      [](member_id, worker_settings&, introductions_settings&) {};
};
world_parts usual_parts();

// Told at the protocol's points, besides what protocol_points has.
class world_watcher : public protocol_points {
 public:
  // Before a member's device reads the parameters of a layer.
  virtual void layer_computed(member_id, std::uint64_t /*step*/, std::uint32_t /*layer*/) {}
};

class world {
 public:
  // The watcher outlives the world.
  world(const world_settings& settings, world_watcher& watcher,
        const world_parts& parts = usual_parts());
  ~world();

  // Until all members have ended, or nothing can happen any more, or virtual time is over.
  void run(time_since_start at_most = std::chrono::hours(24));
  // One turn of whatever is next; false: nothing is left to happen.
  bool step_on();

  time_since_start now() const { return clock_.now(); }
  // Everybody's wall clock is set.
  void jump_wall(std::chrono::nanoseconds by) { clock_.jump_wall(by); }
  std::size_t size() const { return members_.size(); }
  const std::optional<ending>& ended(std::size_t i) const { return members_[i]->body->ended(); }
  const memory_recorder& records(std::size_t i) const { return *members_[i]->records; }
  toy_computation& device(std::size_t i) { return *members_[i]->device; }
  memory_store& store() { return store_; }
  const memory_store& store() const { return store_; }
  comm::simulated_network& network() { return network_; }
  // The member is told to leave.
  void stop(std::size_t i, const std::string& why);
  // Its launcher lets it leave.
  void drain(std::size_t i, const std::string& why);
  // The process is gone, as after SIGKILL.
  void kill(std::size_t i, std::optional<std::chrono::nanoseconds> noticed_after);
  // A new process in the slot of one that was killed or has ended; it joins the world.
  void revive(std::size_t i);
  // One more member, which joins; returns its number.
  std::size_t add_member();
  // SIGSTOP and SIGCONT. Also, like kill(), in the middle of one of the member's own handlers: what
  // is left of it has no effect outside of the member then, or has it when the member goes on.
  void freeze(std::size_t i);
  void thaw(std::size_t i);
  bool lives(std::size_t i) const { return !members_[i]->killed && !members_[i]->body->ended(); }
  incarnation life(std::size_t i) const { return members_[i]->life; }
  // Is the process that a plan lists still there?
  bool lives(const protocol::plan_member& m) const {
    return lives(m.id.value) && life(m.id.value) == m.life;
  }
  // Has every block of the newest plan a holder that lives and of whom `there` holds?
  bool newest_plan_is_covered(const std::function<bool(std::size_t)>& there) const;
  std::uint32_t backups() const { return settings_.backups; }
  std::uint32_t resets() const { return settings_.resets; }
  bool killed(std::size_t i) const { return members_[i]->killed; }
  // Connections that the member left open when it ended.
  std::size_t links_at_end(std::size_t i) const { return members_[i]->links_at_end; }
  comm::process_id process(std::size_t i) const { return members_[i]->process; }
  // There is something for the member to progress that its network does not know of.
  void nudge(std::size_t i) { mark(i); }
  // What is to happen at a moment of virtual time.
  void at(time_since_start when, std::function<void()> what) { time_.at(when, std::move(what)); }
  // All lines that anybody has recorded, by step; of equal ones one.
  const std::map<std::uint64_t, committed_step>& lines() const { return store_.lines; }

  // Has a member come to the end of the run?
  bool somebody_finished() const;
  // ... and every member of the newest plan has ended? Whoever still wants to join is told by its
  // launcher.
  bool over() const;

  // Why the run did not end well: the first cause that a member named, or that it stands still.
  std::string trouble() const;
  std::uint64_t turns() const { return turns_; }
  // Of real time, in all its turns.
  double cpu_seconds(std::size_t i) const { return members_[i]->cpu_seconds; }
  // Of everything that was delivered, when and to whom.
  std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  struct one {
    comm::process_id process;
    incarnation life{1};
    std::unique_ptr<comm::transport> transport;
    std::unique_ptr<memory_recorder> records;
    std::unique_ptr<run_store> view;
    std::unique_ptr<member> body;
    toy_computation* device = nullptr;  // owned by the body
    std::optional<time_since_start> timer;
    bool dirty = false;
    bool killed = false, frozen = false, exits = false;
    std::size_t links_at_end = 0;
    double cpu_seconds = 0;
  };
  void start_member(std::size_t i, incarnation life, bool joins);
  class living_points;

  void mark(std::size_t i);
  void exit_soon(std::size_t i);
  void run_dirty();
  void note(std::uint64_t what);
  void set_timer(std::size_t i);
  void plan_resets();

  world_settings settings_;
  manual_clock clock_;
  comm::simulated_network network_;
  timeline time_;
  memory_store store_;
  std::uint64_t random_;
  std::vector<std::unique_ptr<one>> members_;
  std::vector<std::size_t> of_process_;
  world_parts parts_;
  std::unique_ptr<living_points> points_;  // what the members are given for the watcher
  std::vector<std::size_t> dirty_;
  std::set<std::pair<time_since_start, std::size_t>> timers_;
  std::size_t running_ = 0;
  std::uint64_t turns_ = 0, fingerprint_ = 0x9e3779b97f4a7c15ULL;
};

}  // namespace troupe::actors::sim
