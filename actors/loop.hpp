// The one thread on which all actors of a process run, and the small CAF scheduler behind it.
//
// The owner drives it: run_ready() runs what can run, next_timer() says when something else will.
// In the product the owner is the loop that progresses the transport, in a simulation it is the
// world that moves virtual time; the actors cannot tell. Other threads enter through post() alone.
//
// Not chosen: CAF's own schedulers. Their worker threads make a message between two actors of two
// processes ten times slower, burn a core's share while idle, and leave the order of events to the
// system.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "config/base/clock.hpp"

namespace caf {
class actor_system;
}

namespace troupe::actors {

class loop {
 public:
  // Actors' timers follow `clock`, which outlives the loop.
  explicit loop(const clock_source& clock);
  // Ends all actors.
  ~loop();
  loop(const loop&) = delete;
  loop& operator=(const loop&) = delete;

  caf::actor_system& system() { return *system_; }
  const clock_source& clock() const { return clock_; }

  // From any thread: `work` runs on the loop's thread, in the order of the calls.
  void post(std::function<void()> work);
  // Called after each post(), on the posting thread: wakes the owner.
  void on_post(std::function<void()> wake) { wake_ = std::move(wake); }

  // Runs posted work, timers that are due and actors that have messages, until nothing is left or
  // `most` jobs were run. True if anything ran.
  bool run_ready(std::size_t most = 1024);
  // From a job: it is the last one of this run_ready(); the others wait for the next one.
  void leave() { leaving_ = true; }
  // When the next timer is due, by the clock; nothing if none is set.
  std::optional<time_since_start> next_timer() const;

  // How often one job took longer than a handler may (5 ms), and the longest [s].
  std::uint64_t slow_jobs() const { return slow_jobs_; }
  double longest_job() const { return longest_job_; }

 private:
  struct parts;
  bool run_posted();
  void note_duration(time_since_start started);

  const clock_source& clock_;
  std::function<void()> wake_;
  std::unique_ptr<parts> parts_;  // scheduler, clock, queue: known to CAF's headers only
  std::unique_ptr<caf::actor_system> system_;
  std::uint64_t slow_jobs_ = 0;
  double longest_job_ = 0;
  bool leaving_ = false;
};

}  // namespace troupe::actors
