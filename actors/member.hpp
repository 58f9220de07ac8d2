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

// What a member is made of; all of it outlives the member.
struct member_parts {
  const clock_source& clock;
  comm::transport& transport;
  run_store& store;
  recorder& records;
  protocol_points& points;
};

class member {
 public:
  // The computation posts its completions to the loop, so the loop comes first and the computation
  // is made with it.
  using make_computation = std::function<std::unique_ptr<computation>(loop&)>;

  member(const member_parts& parts, const worker_settings& settings,
         const coordinator_settings& coordination, const introductions_settings& gate,
         const make_computation& make);
  // Ends everything at once, as a crash would, but tidily.
  ~member();

  // Spawns the worker; after it things happen in turn() only.
  void start();
  // True if anything happened.
  bool turn();
  std::optional<time_since_start> next_timer() const { return loop_->next_timer(); }
  void ask_to_stop(const std::string& why);

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
