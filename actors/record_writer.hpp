// The recorder of real runs: hands what it is told to the monitor, on the helper thread that does
// all of the process's file work, in order. The first failure stays: it answers everything that is
// told after it, so that nothing is announced whose record could not be written.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "actors/helper_thread.hpp"
#include "actors/loop_post.hpp"
#include "actors/monitor.hpp"
#include "actors/recorder.hpp"

namespace troupe::actors {

struct record_writer_settings {
  // Called with the plan before the first line of the run, on the helper thread: the table of facts
  // that a start shows.
  std::function<void(const protocol::plan&)> show_start;
  // A plan in a few words.
  std::function<std::string(const protocol::plan&)> plan_line;
  // For the status: what each member keeps in memory, by its share.
  std::function<member_status(const protocol::plan&, const protocol::plan_member&)> member_line;
};

class record_writer final : public recorder {
 public:
  // `told` belongs to the helper thread from now on. All references outlive the object; the helper
  // thread ends before it.
  record_writer(monitor& told, console& screen, const clock_source& clock, helper_thread& worker,
                post_function post, record_writer_settings settings);

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
  void finished(std::uint64_t step, exit_code code, const std::string& why, answer then) override;
  void heard_of(member_id who, const protocol::heartbeat& what) override;

 private:
  using task = std::function<status(monitor&)>;
  void tell(task what, answer then = {});
  void note_facts(const committed_step& step);

  monitor& told_;
  console& screen_;
  const clock_source& clock_;
  helper_thread& worker_;
  loop_post post_;
  record_writer_settings settings_;
  // Of the loop's thread.
  protocol::plan plan_;
  time_since_start last_commit_{};
  double save_began_ = 0;
  // Of the helper thread.
  std::optional<error> failed_;
};

}  // namespace troupe::actors
