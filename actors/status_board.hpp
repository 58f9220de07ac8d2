// Collects what is to be seen of a world and hands out snapshots of it. Belongs to the loop's
// thread; it is told what happened and decides nothing. Counters that come from members grow by
// what a member reports more than the last time, so that a lost member takes nothing away and its
// successor, which counts from 0 again, does not go down.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "actors/protocol/decision.hpp"
#include "actors/world_status.hpp"
#include "config/base/ids.hpp"

namespace troupe::actors {

class status_board {
 public:
  using publisher = std::function<void(std::shared_ptr<const world_status>)>;

  explicit status_board(const clock_source& clock) : clock_(&clock) { enter(run_state::starting); }

  // Called with a new snapshot by publish().
  void publish_to(publisher p) { publisher_ = std::move(p); }
  void publish() const;
  const world_status& now() const { return now_; }

  // Facts that hold for the whole run: names, model, length, plan, limits.
  world_status& facts() { return now_; }

  void enter(run_state s, std::string note = "");
  void committed(const protocol::decision_record& decided, double seconds, bool redone);
  // Of the newest steps; utilization below 0: not known.
  void speed(double tokens_per_second, double step_seconds, double utilization);
  void validated(double loss) { now_.val_loss = loss; }
  void replaced_plan(change_cause why) { ++now_.counters.generations[why]; }
  void lost_member(loss_kind how) { ++now_.counters.losses[how]; }
  void recovered(double unblock_seconds, double recover_seconds);
  void worked(step_phase p, double seconds) { now_.counters.phase_seconds[p] += seconds; }

  void checkpoint_begun() { ++now_.counters.checkpoint_attempts; }
  void checkpoint_failed() { ++now_.counters.checkpoint_failures; }
  void checkpoint_published(std::uint64_t step, std::uint64_t bytes, double seconds);

  // The plan in force and its members. Of members that stay, what they told is kept; `since` is
  // kept where the state is the same. A new life in a slot counts as a restart of it.
  void plan(std::uint64_t generation, std::string line, std::vector<member_status> members);
  member_status* member(member_id id);  // nullptr: no such slot
  void member_is(member_id id, member_state s);
  // What this life of a member has sent since its start.
  void sent(member_id id, incarnation life, lane l, std::uint64_t bytes_since_start);

 private:
  struct sender {
    incarnation life;
    by_lane<std::uint64_t> bytes;
  };

  const clock_source* clock_;
  publisher publisher_;
  world_status now_;
  struct slot {
    incarnation life;
    std::uint64_t restarts = 0;
  };
  std::map<member_id, sender> senders_;
  std::map<member_id, slot> slots_;  // also those that no plan has now
};

}  // namespace troupe::actors
