#include "actors/monitor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/version.hpp"

namespace troupe::actors {

monitor::monitor(file_system& files, const run_directory& directory, const clock_source& clock,
                 console& screen, const monitor_settings& settings, step_log steps,
                 event_log events)
    : files_(&files),
      directory_(&directory),
      clock_(&clock),
      screen_(&screen),
      settings_(settings),
      steps_(std::move(steps)),
      events_(std::move(events)),
      board_(clock) {
  report_.version = version_text();
  validations_ = events_.before().validations;
  board_.facts().run_id = directory.run_id();
  board_.facts().steps = settings.steps;
}

result<monitor> monitor::open(file_system& files, const run_directory& directory,
                              const clock_source& clock, console& screen,
                              const monitor_settings& settings) {
  result<step_log> steps = step_log::open(files, directory.file("steps.jsonl"));
  if (!steps) return steps.failure();
  result<event_log> events =
      event_log::open(files, directory.file("events.jsonl"), clock, directory.run_id());
  if (!events) return events.failure();
  return monitor(files, directory, clock, screen, settings, std::move(*steps), std::move(*events));
}

result<bool> monitor::is_mine() const {
  const result<bool> steps = steps_.is_mine();
  if (!steps || !*steps) return steps;
  return events_.is_mine();
}

void monitor::set_speed_facts(double flops_per_token, double peak_flops,
                              const std::string& peak_source) {
  report_.flops_per_token = flops_per_token;
  report_.peak_flops = peak_flops;
  report_.peak_source = peak_source;
  board_.facts().flops_per_token = flops_per_token;
}

void monitor::set_hashes(const hash128& weights, const hash128& state) {
  report_.weights_hash = weights.hex();
  report_.state_hash = state.hex();
}

void monitor::set_peaks(const std::string& member, std::uint64_t memory_bytes,
                        std::uint64_t activation_bytes) {
  std::uint64_t& memory = report_.peak_memory_bytes[member];
  std::uint64_t& activations = report_.peak_activation_bytes[member];
  memory = std::max(memory, memory_bytes);
  activations = std::max(activations, activation_bytes);
}

// A step that is told again counts once: whoever begins behind its line has seen it.
void monitor::count(const step_record& record) {
  if (record.step <= counted_) return;
  counted_ = record.step;
  tokens_ += record.tokens;
  in_steps_ += record.seconds;
}

status monitor::step(const committed_step& committed, double seconds) {
  const protocol::decision_record& decided = committed.record;
  step_record record;
  record.step = decided.step;
  record.loss = decided.loss;
  record.grad_norm = decided.grad_norm;
  record.lr = static_cast<double>(decided.lr);
  record.tokens = static_cast<std::uint64_t>(decided.tokens);
  record.world = committed.world;
  record.generation = committed.plan.value;
  record.skipped = decided.skip;
  record.seconds = seconds;
  const bool known = committed.at > time_since_start();
  record.mono = std::max(0.0, known ? mono_at(committed.at) : events_.mono());
  const bool there = decided.step <= steps_.last_step();
  if (status added = steps_.add(record); !added) return added.failure();
  const bool first = decided.step > counted_;
  // Of a plan before this one: its coordinator did not know, or could not say, that it has a line.
  // How long it took is not known here, so it says nothing about the speed.
  if (decided.step <= base_) {
    if (there) return done{};
    count(record);
    report_.final_loss = decided.loss;
    return decided.skip && first ? say_skipped(decided) : done{};
  }
  if (there) ++report_.steps_redone;
  count(record);
  report_.final_loss = decided.loss;
  report_.steps = decided.step;
  line_seconds_ += seconds;
  line_tokens_ += record.tokens;
  ++line_steps_;

  const bool due = decided.step == first_step_ + 1 || decided.step % settings_.log_freq == 0 ||
                   decided.step == settings_.steps;
  const progress shown = progress_now(decided);
  screen_->step(shown, due);
  board_.committed(decided, seconds, there);
  board_.speed(shown.tokens_per_second, line_seconds_ / static_cast<double>(line_steps_),
               shown.utilization);
  if (!there && !under_way_.empty()) {
    if (status told = write_recovered(decided.step); !told) return told.failure();
  }
  if (trace_) {
    trace_->marks.push_back({"committed", world_.coordinator, record.mono});
    if (status written = write_trace(); !written) return written.failure();
  }
  board_.publish();
  if (due) {
    line_seconds_ = 0;
    line_tokens_ = line_steps_ = 0;
  }
  return decided.skip && first ? say_skipped(decided) : done{};
}

progress monitor::progress_now(const protocol::decision_record& decided) const {
  const double tokens_per_second =
      static_cast<double>(line_tokens_) / std::max(line_seconds_, 1e-9);
  progress p;
  p.step = decided.step;
  p.steps = settings_.steps;
  p.loss = decided.loss;
  p.grad_norm = decided.grad_norm;
  p.lr = static_cast<double>(decided.lr);
  p.tokens_per_second = tokens_per_second;
  if (report_.peak_flops > 0) {
    p.utilization = tokens_per_second * report_.flops_per_token / report_.peak_flops;
  } else {
    p.utilization = -1;
  }
  p.eta = std::chrono::duration<double>(line_seconds_ / static_cast<double>(line_steps_) *
                                        static_cast<double>(settings_.steps - decided.step));
  p.world = world_.computing;
  p.generation = world_.number;
  p.skipped = decided.skip;
  return p;
}

status monitor::say_skipped(const protocol::decision_record& decided) {
  ++report_.skipped_steps;
  screen_->event(fmt::format("step {} was skipped: {}; the parameters stay as they were",
                             decided.step, decided.why_skipped));
  json_line line = events_.begin("step_skipped");
  line.u64("step", decided.step).text("reason", decided.why_skipped);
  return events_.write(line);
}

status monitor::validated(std::uint64_t step, const validation_result& measured) {
  report_.val_loss = measured.loss;
  board_.validated(measured.loss);
  board_.publish();
  screen_->say(fmt::format("step {:>{}}/{}  val_loss {:.4f}  tokens {}", step,
                           fmt::formatted_size("{}", settings_.steps), settings_.steps,
                           measured.loss, short_count(measured.tokens)));
  const auto tokens = static_cast<std::uint64_t>(measured.tokens);
  const auto stands = validations_.find(step);
  if (stands != validations_.end() && stands->second.tokens == tokens &&
      stands->second.loss == measured.loss) {
    return done{};  // measured again: the plan changed meanwhile, or a resume came by here
  }
  validations_[step] = {measured.loss, tokens};
  json_line line = events_.begin("validation");
  line.u64("step", step).number("loss", measured.loss).u64("tokens", tokens);
  return events_.write(line);
}

status monitor::told_to_stop(std::uint64_t step, const std::string& signal) {
  board_.enter(run_state::stopping, "told to stop (" + signal + ")");
  board_.publish();
  screen_->event(fmt::format(
      "told to stop ({}): saving step {}, then leaving with 75; the same command resumes", signal,
      step));
  json_line line = events_.begin("notice");
  line.text("signal", signal).u64("step", step);
  return events_.write(line);
}

status monitor::weights_not_finite(std::uint64_t step, const std::string& layer) {
  screen_->failure(
      fmt::format("the weights of {} at step {} are not all finite; an older checkpoint is the one "
                  "to go on from",
                  layer, step));
  json_line line = events_.begin("weights_not_finite");
  line.u64("step", step).text("layer", layer);
  return events_.write(line);
}

// A checkpoint is published only behind the lines up to its step.
status monitor::save_begins(std::uint64_t step) {
  board_.checkpoint_begun();
  board_.enter(run_state::saving, fmt::format("step {}", step));
  board_.publish();
  json_line line = events_.begin("checkpoint_started");
  line.u64("step", step);
  if (status written = events_.write(line); !written) return written.failure();
  return steps_.sync();
}

status monitor::saved(std::uint64_t step, const checkpoint::saved& what, double seconds) {
  set_hashes(what.weights_hash, what.state_hash);
  board_.checkpoint_published(step, what.bytes, seconds);
  board_.publish();
  json_line line = events_.begin("checkpoint_published");
  line.u64("step", step)
      .text("folder", what.folder)
      .u64("bytes", what.bytes)
      .number("seconds", seconds)
      .text("weights_hash", report_.weights_hash)
      .text("state_hash", report_.state_hash);
  if (status written = events_.write(line); !written) return written.failure();
  return write_report(std::nullopt);
}

status monitor::save_failed(std::uint64_t step, const error& why) {
  board_.checkpoint_failed();
  board_.publish();
  json_line line = events_.begin("checkpoint_failed");
  line.u64("step", step).text("reason", why.message);
  return events_.write(line);
}

status monitor::finished(std::uint64_t step, exit_code code) {
  const bool to_the_end = code == exit_code::ok;
  json_line line = events_.begin("finished");
  line.i64("exit", static_cast<int>(code))
      .u64("step", step)
      .text("reason", to_the_end ? "the last step is trained" : "told to stop");
  if (status written = events_.write(line); !written) return written.failure();
  if (status written = write_report(code); !written) return written.failure();
  board_.enter(run_state::finished);
  board_.publish();
  screen_->say(
      fmt::format("{} at step {} of {}  loss {:.4f}{}  weights_hash {}",
                  to_the_end ? "finished" : "stopped", step, settings_.steps, report_.final_loss,
                  report_.val_loss ? fmt::format("  val_loss {:.4f}", *report_.val_loss) : "",
                  report_.weights_hash));
  if (report_.skipped_steps > 0) {
    screen_->say(fmt::format("{} steps were skipped", report_.skipped_steps));
  }
  screen_->say("report: " + directory_->file("report.json"));
  return done{};
}

status monitor::was_finished(const checkpoint::manifest& last) {
  const std::string name = directory_->file("report.json");
  result<bool> there = files_->exists(name);
  if (!there) return there.failure();
  if (!*there) {  // the end came between the checkpoint and the report
    set_hashes(last.weights_hash, last.state_hash);
    report_.steps = last.about.step;
    report_.final_loss = steps_.record_of(last.about.step).loss;
    return write_report(exit_code::ok);
  }
  if (settings_.report_file.empty()) return done{};
  result<std::string> text = read_file(*files_, name, std::uint64_t{1} << 20);
  if (!text) return text.failure();
  return replace(*files_, settings_.report_file, *text);
}

// The first cause is told already and has to stay the last word: what fails here, on a full disk
// for example, is not reported again.
void monitor::failed(std::uint64_t step, const error& why) {
  json_line line = events_.begin("finished");
  line.i64("exit", static_cast<int>(why.code)).u64("step", step).text("reason", why.message);
  (void)events_.write(line);
  (void)write_report(why.code);
}

status monitor::write_report(std::optional<exit_code> exit) {
  if (exit) report_.exit = static_cast<int>(*exit);
  report_.seconds = events_.mono();
  report_.tokens_per_second = in_steps_ > 0 ? static_cast<double>(tokens_) / in_steps_ : 0;
  if (report_.peak_flops > 0) {
    report_.utilization = report_.tokens_per_second * report_.flops_per_token / report_.peak_flops;
  }
  report_.goodput = static_cast<double>(tokens_) / std::max(report_.seconds, 1e-9);
  report_.effective_time_ratio = in_steps_ / std::max(report_.seconds, 1e-9);
  report_.bytes_sent = 0;
  for (const std::uint64_t bytes : board_.now().counters.sent_bytes.values) {
    report_.bytes_sent += bytes;
  }
  const std::string text = to_json(report_);
  if (status written = replace(*files_, directory_->file("report.json"), text); !written) {
    return written.failure();
  }
  if (settings_.report_file.empty()) return done{};
  return replace(*files_, settings_.report_file, text);
}

}  // namespace troupe::actors
