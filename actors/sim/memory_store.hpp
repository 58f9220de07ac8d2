// The run directory of a simulated world: a chain of plans, saved states and records, in memory,
// answered after some virtual time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "actors/recorder.hpp"
#include "actors/run_store.hpp"
#include "actors/sim/timeline.hpp"
#include "actors/sim/toy_model.hpp"

namespace troupe::actors::sim {

// What all members share.
class memory_store {
 public:
  memory_store(timeline& time, const clock_source& clock) : time_(time), clock_(clock) {}

  // One member's view of it: answers come through its loop.
  std::unique_ptr<run_store> view(std::function<void(std::function<void()>)> post);

  std::vector<protocol::plan> plans;
  std::optional<comm::address> convener;
  struct saved_state {
    save_facts facts;
    std::map<block_id, toy_state> blocks;
  };
  std::map<std::uint64_t, saved_state> saves;     // by step
  bool finished = false;                          // the run is
  std::map<std::uint64_t, committed_step> lines;  // by step, whoever told them
  std::string wrong_line;  // the first that contradicts another or leaves a gap
  // The first that somebody wrote whose plan was not the newest one (S-14).
  std::string not_fenced;
  time_since_start answer_time = std::chrono::microseconds(200);

 private:
  friend class memory_store_view;
  friend class memory_recorder;
  timeline& time_;
  const clock_source& clock_;
};

// Keeps what it is told. Like the real one it looks, after a longer pause, whether it still has the
// role, and rests if not.
class memory_recorder final : public recorder {
 public:
  // lives: a process that was killed records nothing more; empty: it lives.
  memory_recorder(member_id self, std::function<void(std::function<void()>)> post,
                  memory_store& shared, std::chrono::nanoseconds longest_pause,
                  std::function<bool()> lives = {})
      : self_(self),
        post_(std::move(post)),
        shared_(shared),
        longest_pause_(longest_pause),
        lives_(std::move(lives)) {}

  void started(const protocol::plan& p, const starting_point&) override { take_plan(p); }
  void goes_on(const protocol::plan& p, const starting_point&, const world_change& how) override {
    take_plan(p);
    changes.emplace_back(p.number, how);
  }
  void committed(const committed_step& step, answer then) override {
    if (lives_ && !lives_()) return;
    const time_since_start before = std::exchange(last_line_, shared_.clock_.now());
    const protocol::plan* newest = shared_.plans.empty() ? nullptr : &shared_.plans.back();
    if (newest != nullptr && last_line_ - before > longest_pause_ && newest->coordinator != self_) {
      return;
    }
    // What the newest plan begins with may be told by two.
    if (newest != nullptr && newest->number > plan_ && step.record.step > newest->base) {
      shared_.not_fenced = "member " + std::to_string(self_.value) + " recorded step " +
                           std::to_string(step.record.step) + " under plan " +
                           std::to_string(plan_.value) + ", and plan " +
                           std::to_string(newest->number.value) + " goes on from step " +
                           std::to_string(newest->base);
    }
    lines.push_back(step);
    const std::uint64_t number = step.record.step;
    const auto [at, fresh] = shared_.lines.emplace(number, step);
    if (!fresh && !(at->second.record == step.record)) {
      shared_.wrong_line = "step " + std::to_string(number) + " was recorded with other numbers";
    }
    if (fresh && number > 1 && !shared_.lines.contains(number - 1)) {
      shared_.wrong_line = "step " + std::to_string(number) + " was recorded before the one before";
    }
    post_([then = std::move(then)] { then(done{}); });
  }
  void validated(std::uint64_t step, double loss, double) override { validations[step] = loss; }
  void asked_to_stop(std::uint64_t, const std::string&) override {}
  void save_begins(std::uint64_t) override {}
  void not_finite(std::uint64_t, const std::string&) override {}
  void saved(std::uint64_t step, const saved_hashes& hashes) override {
    saved_step = step;
    hashes_saved = hashes;
  }
  void save_failed(std::uint64_t, const error&) override {}
  void member_lost(member_id who, const std::string& how) override { lost[who] = how; }
  void visitor_refused(const std::string& why) override { refused.push_back(why); }
  void change_waits(const std::string& why) override { waits.push_back(why); }
  void marked(const world_change::mark& what) override { marks.push_back(what); }
  void waits_for_members(const std::string& why) override { waits_for.push_back(why); }
  void members_are_here(double seconds) override { waited.push_back(seconds); }
  void finished(std::uint64_t, exit_code code, const std::string&, answer then) override {
    finished_with = code;
    post_([then = std::move(then)] { then(done{}); });
  }
  void heard_of(member_id, const protocol::heartbeat&) override {}

  std::vector<committed_step> lines;
  std::vector<std::pair<generation, world_change>> changes;
  std::map<std::uint64_t, double> validations;
  std::map<member_id, std::string> lost;
  std::vector<std::string> refused, waits, waits_for;
  std::vector<double> waited;  // [s]
  std::vector<world_change::mark> marks;
  std::uint64_t saved_step = 0;
  saved_hashes hashes_saved;
  std::optional<exit_code> finished_with;

 private:
  void take_plan(const protocol::plan& p) {
    plan_ = p.number;
    last_line_ = shared_.clock_.now();
  }

  member_id self_;
  std::function<void(std::function<void()>)> post_;
  memory_store& shared_;
  std::chrono::nanoseconds longest_pause_;
  generation plan_;
  time_since_start last_line_{};
  std::function<bool()> lives_;
};

}  // namespace troupe::actors::sim
