// What the launcher decides: whose process it starts again, whom it tells to leave, whom it kills,
// and what the run's exit code and last words are. A pure function of what it saw: notices, ends of
// workers, who was in the world, and the time.
//
// A world goes on without a member that it has lost, so the end of one is no trouble for the rest:
// as long as somebody else is left who carries the state, the lost one's process is started again
// and joins. It ends with its world: once one left in order from the newest plan (0 or 75), or
// ended for a reason that stays (bad data, a bad config), or the last that was in the world is
// gone, the run is ending. Nobody is started any more, and what does not end by itself is told,
// then killed, so that nothing is left behind.
//
// Who was started again is of no use before a plan names it: if all others are lost meanwhile, it
// waits for a world that is gone. That is why the launcher has to know who is in the newest plan.
// Not chosen: to trust that whoever runs long enough is in by now. Deaths that follow one another
// within milliseconds, as when a machine runs out of memory, would start the dead of one wave again
// one for the other.
//
// Who leaves because a person asked for it goes alone: its end is no loss and no end of the run,
// its slot stays empty until somebody wants it again.
//
// The last words name the *first cause*: a worker killed by a signal or ended with a code of its
// own, not one that ended with 69 because of it, whichever the system reported first. The loss of a
// worker that the world outlived is no cause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/restart_budget.hpp"
#include "actors/world_order.hpp"
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

enum class standing : std::uint8_t {
  in,      // the newest plan names its present process, or its last one
  former,  // an earlier process of its slot
  out      // nobody in its slot
};

struct launch_patience {
  time_since_start to_notice = std::chrono::seconds(2);   // that the run cannot go on
  time_since_start to_finish = std::chrono::seconds(25);  // once another one has left in order
  time_since_start to_leave = std::chrono::seconds(25);   // after having been told
};

class launch_outcome {
 public:
  struct order {
    std::size_t worker;
    int signal;
    friend auto operator<=>(const order&, const order&) = default;
  };

  launch_outcome(std::vector<launched_worker> workers, std::string host, launch_patience patience,
                 const restart_rule& restarts = {});

  // A notice to the launcher, passed on to the workers. A second INT means leave now.
  std::vector<order> notice(int signal);
  // By worker: whom does the newest plan name? To be told before each ended(); who never tells it
  // says that they all are in.
  void in_world(const std::vector<standing>& newest_plan);
  void ended(std::size_t worker, worker_end end, time_since_start now);
  // What is due by now; next_due() says when to ask again, nothing: only an end changes anything.
  std::vector<order> due(time_since_start now);
  std::vector<std::size_t> restarts_due(time_since_start now) const;
  std::optional<time_since_start> next_due() const;
  // What became of a restart that was due.
  void restarted(std::size_t worker, int process);
  void not_restarted(std::size_t worker, const std::string& why, time_since_start now);

  // What a person asked for (world_order). One more slot, still empty; then the order, which
  // returns whose processes are to be told to leave.
  std::vector<slot_now> slots() const;
  void add(const launched_worker& worker);
  std::vector<std::size_t> take_on(const world_order& asked, time_since_start now);
  bool stops() const { return noticed_ || ending_.has_value(); }
  bool over() const { return running_ == 0; }

  std::vector<std::string> take_news();  // lines to be said now

  // Of the run. Requires over().
  int code() const;
  // Lines for the end of stderr; "" where the workers have said everything.
  std::string last_words() const;

 private:
  struct state {
    launched_worker about;  // its present process, or the last one
    restart_budget budget;
    bool running = true;
    standing in_plan = standing::in;
    bool replaces = false;  // this process took the place of an earlier one
    bool told = false;      // by the launcher, because the run is ending
    bool killed = false;
    bool wanted = true;    // a slot of the world as a person wants it
    bool leaving = false;  // this process was told to leave alone
    bool ordered = false;  // its start was asked for, and makes up for nothing
    std::optional<worker_end> last_end = {};
    std::optional<time_since_start> restart_at = {};
  };
  enum class manner : std::uint8_t { orderly, curable, lasting };
  struct past_end {  // of a process that the world has not made up for
    std::size_t worker;
    int process;
    worker_end end;
    manner how;
    bool told;      // or of no use: its end says nothing
    bool outlived;  // it was not needed any more, or not yet, and the world went on
    bool in_time;   // before the run was ending
  };

  manner manner_of(worker_end end) const;
  static bool went_wrong(const past_end& e) {
    return !e.told && !e.outlived && e.how != manner::orderly;
  }
  bool is_useless(const state& w) const { return w.replaces && w.in_plan != standing::in; }
  bool member_runs() const;
  void forget_what_was_made_up_for();
  void left(state& w, const past_end& how, time_since_start now);
  void plan_restart(std::size_t worker, const std::string& what, time_since_start now, bool calm);
  void begin_to_end(time_since_start now, time_since_start patience);
  time_since_start tell_at(const state& w) const;
  std::vector<order> all_running(int signal) const;
  bool is_orderly() const;
  const past_end* first_cause() const;
  std::string who(const past_end& e) const;
  std::string describe_end(const past_end& e) const;

  std::vector<state> workers_;
  std::vector<past_end> ends_;  // in their order
  std::vector<std::string> news_;
  std::string host_;
  launch_patience patience_;
  restart_rule restarts_;
  std::size_t running_;
  bool interrupted_ = false, noticed_ = false, leave_now_ = false;
  struct ending {
    time_since_start since, tell_at;
  };
  std::optional<ending> ending_;
};

}  // namespace troupe::actors
