// A run, watched from outside through what it writes: steps.jsonl, events.jsonl and plans/. Each
// look finds what is new and tells it in the schedule's words; at the end everything that was seen
// becomes facts.
//
// An event carries the seconds since its writer's start; a line is seen a little after it was
// written. The smallest difference between the two times over all lines of one writer puts its
// events on our clock, to well within the time between two looks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/chaos/run_facts.hpp"
#include "actors/chaos/target_lookup.hpp"
#include "config/base/file.hpp"

namespace troupe::actors::chaos {

// Whole lines of a growing file, as they appear.
class line_follower {
 public:
  line_follower(file_system& files, std::string path) : files_(&files), path_(std::move(path)) {}
  std::vector<std::string> new_lines();

 private:
  file_system* files_;
  std::string path_;
  std::unique_ptr<file> file_;
  std::uint64_t at_ = 0;
  std::string rest_;
};

class run_watcher {
 public:
  run_watcher(file_system& files, const std::string& run_directory);

  // What is new, in order.
  std::vector<happening> look(duration now);
  bool has_plan() const { return !plans_.empty(); }
  // Plan and unfinished copies. Requires has_plan().
  void fill(world_view& world) const;
  std::uint64_t steps() const { return seen_at_.size(); }
  std::uint64_t step_in_progress() const { return step_; }
  const std::vector<seen_event>& events() const { return events_; }

  // Reads the records once more, strictly, and fills in everything that they tell.
  void finish(run_facts& facts) const;

 private:
  void look_for_plans(std::vector<happening>& news);
  void take_event(const std::string& line, duration now, std::vector<happening>& news);
  void put_on_our_clock(std::vector<seen_event>& events) const;

  file_system* files_;
  std::string directory_;
  line_follower steps_, event_lines_;
  std::vector<protocol::plan> plans_;
  std::vector<duration> seen_at_;  // of step n at n - 1
  std::vector<seen_event> events_;
  std::uint64_t step_ = 0;
  std::set<std::pair<member_id, protocol::block_id>> unfinished_;
  std::uint64_t steps_of_plan_ = 0;
  std::string trouble_;
};

}  // namespace troupe::actors::chaos
