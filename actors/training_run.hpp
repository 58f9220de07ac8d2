// A member's part of a training run, from a claimed run directory and settings to the end: opens
// data and device, and drives a member of the world until it has ended. The member that convenes
// also chooses the checkpoint to continue from, before the world meets. Records, status and the
// address are kept by whichever member coordinates; every one of them is ready to.
//
// The shell around member (the actors), model_computation (what a step computes), file_run_store
// (plans and checkpoints) and record_writer (what is told). What may hang is done before the loop
// runs, or on the helper thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/console.hpp"
#include "actors/fault_hooks.hpp"
#include "actors/file_run_store.hpp"
#include "actors/launcher_line.hpp"
#include "actors/member.hpp"
#include "actors/model_computation.hpp"
#include "actors/monitor.hpp"
#include "actors/record_writer.hpp"
#include "actors/run_directory.hpp"
#include "actors/status_port.hpp"
#include "config/base/clock.hpp"
#include "config/settings.hpp"
#include "model/checkpoint/choose.hpp"
#include "model/data/dataset.hpp"

namespace troupe::actors {

// This member's place among those that start together, or in a world that is under way.
struct place_in_world {
  std::uint32_t slot = 0;      // slot 0 convenes, unless it joins
  std::uint32_t expected = 1;  // members in all; says nothing where it joins
  std::string name = "worker-0";
  incarnation life{1};
  bool joins = false;  // comes to a run that is under way: never convenes
};

struct run_request {
  config::settings settings;
  checkpoint::wanted resume;
  std::string report_file;  // besides RUN_DIR/report.json; "" for none
  place_in_world place = {};
};

// What a run needs from the outside; all of it outlives the run.
struct run_surroundings {
  file_system& files;
  const clock_source& clock;
  console& screen;
  // The notice to stop that came first, 0 for none; asked again and again, with the number of steps
  // that are decided as far as this member knows.
  std::function<int(std::uint64_t)> stop_signal;
  // Does the notice mean the whole run, and not this member alone? Empty: it always does.
  std::function<bool()> stop_means_the_run = {};
  // What the launcher has to say to this worker, one after another; empty: nothing ever.
  std::function<std::optional<launcher_order>()> launcher_says = {};
  status_port* port = nullptr;           // where status and metrics are served; nothing: nowhere
  comm::transport* transport = nullptr;  // nothing: this member stays alone
  std::optional<comm::secret> secret = {};
  fault_hooks* faults = nullptr;  // of a worker that was started under chaos
};

class training_run {
 public:
  training_run(const run_directory& directory, const run_request& request,
               const run_surroundings& around);
  ~training_run();

  // All in one: the exit code of the run; failures were told on the screen.
  int run();

  // The same in pieces, for whoever drives several members in one thread. start() ends the run at
  // once by returning a code; else turn() is called until ended().
  std::optional<int> start();
  bool turn();  // true if anything happened
  std::optional<int> ended();
  std::optional<time_since_start> next_timer() const { return member_->next_timer(); }
  void on_work(std::function<void()> wake);  // called from other threads when there is work

 private:
  result<bool> prepare();  // false: nothing is left to do
  status open_parts();
  status open_port();
  result<monitor> open_monitor();
  result<monitor> take_over_records();
  result<bool> still_ours(const protocol::plan& mine);
  status open_validation();
  result<bool> choose_start();
  result<std::optional<checkpoint::manifest>> choose_checkpoint();
  void make_member();
  void obey(const launcher_order& order);
  worker_settings worker_settings_now() const;
  coordinator_settings coordinator_settings_now();
  record_writer_settings record_settings();
  void measure_peak();
  void show_on_board(monitor& told) const;
  void show_start(const protocol::plan& p);
  std::uint16_t port_now();
  std::string plan_line(const protocol::plan& p) const;
  member_status member_line(const protocol::plan& p, const protocol::plan_member& m) const;
  checkpoint::facts checkpoint_facts(const save_facts& facts) const;
  int finish(ending how);  // a copy: it ends the member, who says it

  bool convenes() const { return request_.place.slot == 0 && !request_.place.joins; }
  std::uint64_t steps() const { return static_cast<std::uint64_t>(settings().training.steps); }
  const config::settings& settings() const { return request_.settings; }
  std::string checkpoints() const { return directory_.file(settings().checkpoint.folder); }

  const run_directory& directory_;
  run_request request_;
  run_surroundings around_;
  model::description description_;
  model::model_layout layout_;
  trainer_settings training_;
  std::unique_ptr<compute::executor> device_;
  std::optional<model::data::dataset> data_, validation_data_;
  std::uint64_t validation_windows_ = 0;
  std::string data_digest_;
  double peak_flops_ = 0, flops_per_token_ = 0;
  std::string peak_source_;

  starting_point start_;
  std::vector<checkpoint::history_entry> history_;
  std::optional<monitor> monitor_;  // of who convenes, until there is a record_writer to give it to
  // Who is not the coordinator of the plan that it adopts does not keep the records.
  struct : protocol_points {
    void plan_adopted(member_id self, const protocol::plan& p) override {
      adopted = true;
      if (records != nullptr && p.coordinator != self) records->rests();
      passes.begin_plan();
    }
    void reached(member_id, protocol_point at, std::uint64_t step,
                 std::optional<member_id>) override {
      if (faults != nullptr) faults->reached(name_of(at), step, passes.count(at, step));
    }
    bool adopted = false;
    record_writer* records = nullptr;
    fault_hooks* faults = nullptr;
    point_counter passes;
  } points_;
  std::optional<plan_chain> chain_;  // of the helper thread: only read

  std::unique_ptr<comm::transport> alone_;  // where no transport was given
  std::unique_ptr<file_run_store> store_;
  std::unique_ptr<record_writer> records_;
  std::unique_ptr<member> member_;
  std::unique_ptr<helper_thread> files_thread_;  // ends before what it works for
  bool stop_passed_on_ = false, run_stop_passed_on_ = false;
  std::uint64_t decided_ = 0;  // newest step, where this member coordinates
  std::optional<int> code_;
};

}  // namespace troupe::actors
