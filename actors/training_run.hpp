// A whole training run of one worker: from a claimed run directory and settings to the last step's
// checkpoint. Opens data and device, continues from the newest whole checkpoint, trains, validates
// and saves, at the end and at every orderly stop. The thin shell around trainer (what a step
// computes), model/checkpoint (what is kept) and monitor (what is told).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/console.hpp"
#include "actors/monitor.hpp"
#include "actors/run_directory.hpp"
#include "actors/trainer.hpp"
#include "config/base/clock.hpp"
#include "config/settings.hpp"
#include "model/checkpoint/choose.hpp"
#include "model/checkpoint/state_hash.hpp"
#include "model/data/dataset.hpp"

namespace troupe::actors {

struct run_request {
  config::settings settings;
  checkpoint::wanted resume;
  std::string report_file;  // besides RUN_DIR/report.json; "" for none
};

// What a run needs from the outside; all of it outlives the run.
struct run_surroundings {
  file_system& files;
  const clock_source& clock;
  console& screen;
  std::function<int()> stop_signal;      // the notice to stop that came first, 0 for none
  status_board::publisher publish = {};  // what is to be seen, after everything that happens
};

class training_run {
 public:
  training_run(const run_directory& directory, const run_request& request,
               const run_surroundings& around);
  ~training_run();

  // The exit code of the run; failures were told on the screen.
  int run();

 private:
  struct validation_set {
    model::data::dataset data;
    model::evaluation evaluation;
    std::uint64_t windows;
  };

  // In this order.
  result<exit_code> run_to_the_end();
  status open_parts();
  status open_validation();
  result<bool> resume();  // false: the run is finished already
  std::string plan_line() const;
  void show_on_board();
  void note_peaks();
  void show_start();
  result<exit_code> train_steps();
  status save();

  status one_step(std::uint64_t step);
  status count_skips();
  status validate_now();
  status warn_if_not_finite();

  std::uint64_t steps() const { return static_cast<std::uint64_t>(settings().training.steps); }
  const config::settings& settings() const { return request_.settings; }
  std::string checkpoints() const { return directory_.file(settings().checkpoint.folder); }
  checkpoint::facts checkpoint_facts() const;

  const run_directory& directory_;
  run_request request_;
  run_surroundings around_;
  model::description description_;
  std::unique_ptr<compute::executor> device_;
  std::optional<model::data::dataset> data_;
  std::unique_ptr<trainer> trainer_;
  std::unique_ptr<validation_set> validation_;
  std::optional<monitor> monitor_;
  std::string data_digest_;
  std::vector<std::int32_t> tokens_, targets_;  // of the step being computed

  // Where the run stands.
  std::uint64_t step_ = 0, updates_ = 0, tokens_seen_ = 0;
  std::uint64_t first_step_ = 0;  // finished steps when this start began
  std::vector<checkpoint::history_entry> history_;
  protocol::decision_record last_;
  std::uint64_t skipped_in_a_row_ = 0;
};

}  // namespace troupe::actors
