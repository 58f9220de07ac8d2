// What the outside sees of a run: steps.jsonl, events.jsonl, report.json and the lines on the
// screen. It is told what happened and decides nothing; everything that counts time or tokens for
// people is here, so that the training itself has no clock to look at.
//
// Any process of the run may come to keep the records, at any time: one that opens the files of a
// run that is under way counts on from what stands in them (run_history), and what it is told of
// steps that have their lines is compared and nothing else.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/change_trace.hpp"
#include "actors/console.hpp"
#include "actors/protocol/decision.hpp"
#include "actors/recorder.hpp"
#include "actors/records.hpp"
#include "actors/report.hpp"
#include "actors/run_directory.hpp"
#include "actors/status_board.hpp"
#include "actors/straggler_watch.hpp"
#include "actors/validation.hpp"
#include "config/base/clock.hpp"
#include "model/checkpoint/save.hpp"

namespace troupe::actors {

struct monitor_settings {
  std::uint64_t steps = 0;     // of the whole run
  std::uint64_t log_freq = 1;  // steps between two lines
  std::string report_file;     // besides RUN_DIR/report.json; "" for none
};

// A generation, as records and people are told of it.
struct world_facts {
  std::uint64_t number = 0;
  std::uint64_t members = 1, computing = 1;
  std::string plan_hash;    // "" where there is no chain of plans
  std::string plan_line;    // for people
  std::string reason;       // in words
  std::string coordinator;  // its name
};

class monitor {
 public:
  static result<monitor> open(file_system& files, const run_directory& directory,
                              const clock_source& clock, console& screen,
                              const monitor_settings& settings);

  std::uint64_t last_recorded_step() const { return steps_.last_step(); }
  // What the files told when they were opened.
  const run_history& before() const { return events_.before(); }
  // False if another process has written into the files since: this object knows too little then.
  result<bool> is_mine() const;

  // What utilization is measured against; `peak_source` in words.
  void set_speed_facts(double flops_per_token, double peak_flops, const std::string& peak_source);
  // Peaks of one member; the highest value of each counts.
  void set_peaks(const std::string& member, std::uint64_t memory_bytes,
                 std::uint64_t activation_bytes);
  // What is to be seen from outside; published at each of the calls below.
  status_board& board() { return board_; }

  // Each writes its event, and says it where a person should know.
  status started(std::uint64_t from_step, const world_facts& world);
  // A later plan: the steps from here on are computed by it.
  status goes_on(std::uint64_t from_step, const world_facts& world, const world_change& how);
  status step(const committed_step& committed, double seconds);
  status validated(std::uint64_t step, const validation_result& measured);
  status world_asked_for(const std::string& asked, std::uint64_t from, std::uint64_t to);
  // More of what happened on the way to the plan in force.
  void marked(const world_change::mark& what);
  status waits_for_members(const std::string& why);
  status members_are_here(double seconds);
  status straggles(std::uint64_t step, const std::string& member, const straggler& how);
  status told_to_stop(std::uint64_t step, const std::string& signal);
  // `when` it was noticed, by this process's clock.
  status member_lost(const std::string& member, const std::string& how, time_since_start when);
  void heard_of(const std::string& member, time_since_start when) { heard_[member] = when; }
  status weights_not_finite(std::uint64_t step, const std::string& layer);
  status save_begins(std::uint64_t step);
  status saved(std::uint64_t step, const checkpoint::saved& what, double seconds);
  status save_failed(std::uint64_t step, const error& why);
  void set_hashes(const hash128& weights, const hash128& state);

  // A start on a run that is finished: its report is there, and where it was asked for.
  status was_finished(const checkpoint::manifest& last);
  // The last words of a run that came to its end or stopped in order, or of one that failed.
  status finished(std::uint64_t step, exit_code code);
  void failed(std::uint64_t step, const error& why);

  wall_time wall() const { return clock_->wall(); }
  double now() const { return std::chrono::duration<double>(clock_->now()).count(); }

 private:
  status new_generation(std::uint64_t from_step, const world_facts& world,
                        const recovery* change);  // nullptr: of a start
  void take_over(std::uint64_t from_step);
  status tell_change(std::uint64_t from_step, const world_facts& world, const world_change& how);
  void count_cause(std::uint64_t from_step, const world_change& how);
  status write_loss(std::uint64_t recovery, const world_change::lost_member& lost);
  void begin_trace(const world_facts& world, const world_change& how);
  status write_trace();
  status write_recovered(std::uint64_t step);
  void count(const step_record& record);
  double mono_at(time_since_start when) const;
  monitor(file_system& files, const run_directory& directory, const clock_source& clock,
          console& screen, const monitor_settings& settings, step_log steps, event_log events);
  progress progress_now(const protocol::decision_record& decided) const;
  status say_skipped(const protocol::decision_record& decided);
  status write_report(std::optional<exit_code> exit);

  file_system* files_;
  const run_directory* directory_;
  const clock_source* clock_;
  console* screen_;
  monitor_settings settings_;
  step_log steps_;
  event_log events_;
  report report_;
  status_board board_;
  world_facts world_;
  bool told_of_world_ = false;
  std::uint64_t first_step_ = 0;  // finished steps when this start, or this process's part, began
  std::uint64_t base_ = 0;        // of the plan in force
  std::uint64_t counted_ = 0;     // the newest step of this start that is in the sums below
  std::uint64_t tokens_ = 0;      // of steps of this start
  double in_steps_ = 0;           // [s]
  std::vector<recovery> under_way_;
  std::map<std::uint64_t, run_history::validation> validations_;  // that have their lines, by step
  std::map<std::string, time_since_start> heard_;
  std::optional<change_trace> trace_;  // of the plan in force, until its first step
  struct slow_member {
    double named = 0;  // [s], the last time
    bool said = false;
  };
  std::map<std::string, slow_member> slow_;
  std::map<std::string, std::uint64_t> losses_told_;  // member, and the recovery it stands under
  double line_seconds_ = 0;                           // since the last progress line
  std::uint64_t line_tokens_ = 0, line_steps_ = 0;
};

}  // namespace troupe::actors
