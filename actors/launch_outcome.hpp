// What the launcher decides: whom it tells to leave, whom it kills, and what the run's exit code
// and last words are. A pure function of what it saw: notices, ends of workers and the time.
//
// A world notices a lost member by itself and ends, or goes on, by itself; the launcher is the one
// outside of it that gives every end a bound. So a worker that ends badly starts a patience: the
// others have `to_notice` to end by themselves, then they are told, then they are killed. The last
// words name the *first cause*: a worker killed by a signal or ended with a code of its own, not
// one that ended with 69 because of it, whichever the system reported first.
//
// Not chosen: killing the others at once, as many launchers do. It would take their chance to say
// what they saw and to leave the run directory in order.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "config/base/clock.hpp"

namespace troupe::actors {

struct launched_worker {
  std::string name;  // "worker-0"
  int process = 0;
  std::string log;  // its log file, "" for none
};

struct worker_end {
  bool by_signal = false;
  int number = 0;  // exit code or signal
};

struct launch_patience {
  time_since_start to_notice = std::chrono::seconds(2);  // that another worker was lost
  time_since_start to_leave = std::chrono::seconds(5);   // after having been told
};

class launch_outcome {
 public:
  struct order {
    std::size_t worker;
    int signal;
    friend auto operator<=>(const order&, const order&) = default;
  };

  launch_outcome(std::vector<launched_worker> workers, std::string host, launch_patience patience);

  // A notice to the launcher, passed on to the workers. A second INT means leave now.
  std::vector<order> notice(int signal);
  void ended(std::size_t worker, worker_end end, time_since_start now);
  // What is due by now; next_due() says when to ask again, nothing: only an end changes anything.
  std::vector<order> due(time_since_start now);
  std::optional<time_since_start> next_due() const;
  bool over() const { return running_ == 0; }

  // Of the run. Requires over().
  int code() const;
  // Lines for the end of stderr; "" where the workers have said everything.
  std::string last_words() const;

 private:
  struct state {
    launched_worker about;
    std::optional<worker_end> end;
    bool told = false;  // by the launcher, because another one was lost
    bool killed = false;
  };
  std::vector<order> all_running(int signal) const;
  bool went_wrong(const state& w) const;
  const state* first_cause() const;
  std::string describe_end(const state& w) const;

  std::vector<state> workers_;
  std::vector<std::size_t> in_order_;  // of their ends
  std::string host_;
  launch_patience patience_;
  std::size_t running_;
  bool interrupted_ = false, noticed_ = false, leave_now_ = false;
  std::optional<time_since_start> trouble_since_;
};

}  // namespace troupe::actors
