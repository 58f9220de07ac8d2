// The record files of a run: steps.jsonl, one line a step in which each step stands exactly once,
// and events.jsonl, what happened. Both are appended to on resume and never emptied. A line that a
// crash tore is cut off when the file is opened; steps that a resume computes again are compared
// with their lines, bit for bit, instead of being written twice.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/run_history.hpp"
#include "config/base/clock.hpp"
#include "config/base/error.hpp"
#include "config/base/file.hpp"
#include "config/base/json.hpp"

namespace troupe::actors {

struct step_record {
  std::uint64_t step = 0;  // 1-based
  double loss = 0;         // mean over counted target tokens, nats
  double grad_norm = 0;
  double lr = 0;
  std::uint64_t tokens = 0;
  std::uint64_t world = 1;  // members that computed
  std::uint64_t generation = 0;
  bool skipped = false;
  double seconds = 0;
  double mono = -1;  // [s since the start], when it was committed; below 0: not known

  // Everything that the bits decide: all but world, generation and times.
  bool same_bits(const step_record& other) const;
};

// All whole lines of a steps.jsonl; a torn last line does not count. The file may be missing.
result<std::vector<step_record>> read_steps(file_system& files, const std::string& path);

class step_log {
 public:
  // Repairs a torn last line. Lines must count up from 1 without a gap.
  static result<step_log> open(file_system& files, const std::string& path);

  std::uint64_t last_step() const { return records_.size(); }
  const step_record& record_of(std::uint64_t step) const {
    ensure(step >= 1 && step <= last_step(), "a step was looked up that has no record");
    return records_[step - 1];
  }
  // The next step is written; a step that stands already, also one that another process wrote
  // meanwhile, is compared. A difference and a gap are errors.
  status add(const step_record& record);
  status sync();
  // Does the file end where this object left it? Not if another process has written since.
  result<bool> is_mine() const;

 private:
  status read_on();

  std::string path_;
  std::unique_ptr<file> file_;
  std::vector<step_record> records_;  // record of step n at n - 1
  std::uint64_t whole_bytes_ = 0;
};

class event_log {
 public:
  static result<event_log> open(file_system& files, const std::string& path,
                                const clock_source& clock, std::string run_id);

  // What the file told when it was opened.
  const run_history& before() const { return before_; }
  // The time since the start goes on where another process was with it; without this call it begins
  // with the opening.
  void go_on();
  double mono() const;           // [s since the start]
  result<bool> is_mine() const;  // as step_log's

  // Starts an event's line with its common fields; finish it with write().
  json_line begin(const std::string& event);
  status write(json_line& line);

 private:
  std::unique_ptr<file> file_;
  const clock_source* clock_ = nullptr;
  time_since_start start_{};
  double before_start_ = 0;  // [s] that had passed at start_
  run_history before_;
  std::string run_id_;
  std::uint64_t whole_bytes_ = 0;
  std::uint64_t next_number_ = 1;
};

}  // namespace troupe::actors
