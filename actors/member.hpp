// One member of the world, put together: loop, gate, and the tree of actors under its worker. It is
// driven from outside, so that the product and the simulation run the same: turn() moves what can
// be moved, next_timer() says when something is due.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "actors/loop.hpp"
#include "actors/worker.hpp"

namespace troupe::actors {

struct member_settings {
  // These three outlive the member.
  const clock_source& clock;
  comm::transport& transport;
  protocol_points& points;
  worker_settings worker;
  coordinator_settings coordination;
  introductions_settings gate;
};

// What answers through the member's loop, so that it can be made only with it.
struct member_outside {
  run_store& store;  // both outlive the member
  recorder& records;
  std::unique_ptr<computation> work;
};

class member {
 public:
  member(const member_settings& settings, const std::function<member_outside(loop&)>& make);
  // Ends everything at once, as a crash would, but tidily.
  ~member();

  // Spawns the worker; after it things happen in turn() only.
  void start();
  // True if anything happened.
  bool turn();
  std::optional<time_since_start> next_timer() const { return loop_->next_timer(); }
  // The whole run is to stop, or this member alone to leave it.
  void ask_to_stop(const std::string& why, bool whole_run);
  // This member is to leave the world by a plan without it, and to end with 0.
  void ask_to_leave(const std::string& why);

  const std::optional<ending>& ended() const { return ended_; }
  loop& driver() { return *loop_; }
  computation& work() { return *work_; }

 private:
  std::unique_ptr<loop> loop_;
  std::unique_ptr<computation> work_;
  std::optional<ending> ended_;
  introductions gate_;
  std::vector<std::shared_ptr<void>> kept_;
  std::unique_ptr<worker_surroundings> around_;
  caf::actor worker_;
};

}  // namespace troupe::actors
