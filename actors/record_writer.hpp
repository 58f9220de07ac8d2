// The recorder of real runs: hands what it is told to the monitor, on the helper thread that does
// all of the process's file work, in order. The first failure stays: it answers everything that is
// told after it, so that nothing is announced whose record could not be written.
//
// Every member has one, because each may come to coordinate. It rests until the first plan of which
// this process is the coordinator; only then are the record files opened, on the helper thread.
// What is told to one that rests is forgotten: somebody else keeps the records. A process that
// stood still for longer than others wait for it looks, before it writes the next line, whether it
// still has the role (`still_ours`), and rests if not: its line would stand beside its successor's.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "actors/helper_thread.hpp"
#include "actors/loop_post.hpp"
#include "actors/monitor.hpp"
#include "actors/recorder.hpp"
#include "actors/straggler_watch.hpp"

namespace troupe::actors {

// All are called on the helper thread.
struct record_writer_settings {
  // Opens the records of the run.
  std::function<result<monitor>()> open;
  // This process has the role no longer.
  std::function<void()> rest;
  // Is the coordinator of this plan the one of the newest plan as well?
  std::function<result<bool>(const protocol::plan&)> still_ours;
  // A longer pause between two lines may have been noticed by others: fault_tolerance.suspect_ms.
  std::chrono::nanoseconds longest_pause = std::chrono::seconds(1);
  // Called with the plan before the first line of the run: the table of facts that a start shows.
  std::function<void(const protocol::plan&)> show_start;
  // A plan in a few words.
  std::function<std::string(const protocol::plan&)> plan_line;
  // For the status: what each member keeps in memory, by its share.
  std::function<member_status(const protocol::plan&, const protocol::plan_member&)> member_line;
};

class record_writer final : public recorder {
 public:
  // `opened`: the monitor, where it was needed before there is a plan; it belongs to the helper
  // thread from now on. Without one, the writer rests.
  // All references outlive the object; the helper thread ends before it.
  record_writer(std::optional<monitor> opened, console& screen, const clock_source& clock,
                helper_thread& worker, post_function post, record_writer_settings settings);

  void started(const protocol::plan& p, const starting_point& from) override;
  void goes_on(const protocol::plan& p, const starting_point& from,
               const world_change& how) override;
  void committed(const committed_step& step, answer then) override;
  void validated(std::uint64_t step, double loss, double tokens) override;
  void asked_to_stop(std::uint64_t step, const std::string& why) override;
  void save_begins(std::uint64_t step) override;
  void saved(std::uint64_t step, const saved_hashes& what) override;
  void not_finite(std::uint64_t step, const std::string& layer) override;
  void save_failed(std::uint64_t step, const error& why) override;
  void member_lost(member_id who, const std::string& how) override;
  void visitor_refused(const std::string& why) override;
  void change_waits(const std::string& why) override;
  void marked(const world_change::mark& what) override;
  void waits_for_members(const std::string& why) override;
  void members_are_here(double seconds) override;
  void finished(std::uint64_t step, exit_code code, const std::string& why, answer then) override;
  void heard_of(member_id who, const protocol::heartbeat& what) override;

  // A person wants another number of workers, as the launcher has told everybody.
  void world_asked_for(const std::string& asked, std::uint64_t from, std::uint64_t to);

  // A plan is in force whose coordinator is somebody else: closes the records and forgets what is
  // told until the next started() or goes_on(). Called as often as anybody likes.
  void rests();

  // Once the helper thread has ended: the monitor for the last words, nullptr unless this process
  // still has the role.
  monitor* last_words();

 private:
  using task = std::function<status(monitor&)>;
  void tell(task what, answer then = {});
  status open_records();
  status take_plan(const protocol::plan& p);
  world_facts facts_of(const protocol::plan& p) const;
  bool has_role();
  void close_records();
  void note_facts(const committed_step& step);
  status note_speeds(const committed_step& step);

  console& screen_;
  const clock_source& clock_;
  helper_thread& worker_;
  loop_post post_;
  record_writer_settings settings_;
  // Of the loop's thread.
  protocol::plan plan_;
  bool rests_;
  time_since_start last_commit_{};
  // Of the helper thread.
  std::optional<monitor> told_;
  std::optional<error> failed_;
  protocol::plan recorded_plan_;
  time_since_start last_line_{}, last_shown_{};
  straggler_watch speeds_;
  double save_began_ = 0;
};

}  // namespace troupe::actors
