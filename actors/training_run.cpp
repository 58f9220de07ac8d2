#include "actors/training_run.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "actors/from_settings.hpp"
#include "actors/validation.hpp"
#include "actors/version.hpp"
#include "compute/cpu/kernels.hpp"
#include "config/fingerprint.hpp"
#include "model/checkpoint/save.hpp"

namespace troupe::actors {
namespace {

std::uint64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

nlohmann::json to_json_record(const protocol::decision_record& r) {
  // Bits as integers: a record has to come back exactly.
  return {{"step", r.step},
          {"updates", r.updates},
          {"skip", r.skip},
          {"scale_bits", std::bit_cast<std::uint32_t>(r.scale)},
          {"lr_bits", std::bit_cast<std::uint32_t>(r.lr)},
          {"loss_bits", std::bit_cast<std::uint64_t>(r.loss)},
          {"grad_norm_bits", std::bit_cast<std::uint64_t>(r.grad_norm)},
          {"tokens", static_cast<std::uint64_t>(r.tokens)}};
}

}  // namespace

training_run::training_run(const run_directory& directory, const run_request& request,
                           const run_surroundings& around)
    : directory_(directory),
      request_(request),
      around_(around),
      description_(description_from(request.settings)) {
  report_.version = version_text();
}

training_run::~training_run() = default;

double training_run::now() const {
  return std::chrono::duration<double>(around_.clock.now()).count();
}

int training_run::run() {
  started_ = now();
  result<exit_code> end = run_to_the_end();
  if (end) return static_cast<int>(*end);
  around_.screen.failure(end.failure().message);
  const exit_code code = end.failure().code;
  if (events_) {
    json_line line = events_->begin("finished");
    line.i64("exit", static_cast<int>(code))
        .u64("step", step_)
        .text("reason", end.failure().message);
    (void)events_->write(line);  // the first cause is told already
    (void)write_report(static_cast<int>(code));
  }
  return static_cast<int>(code);
}

result<exit_code> training_run::run_to_the_end() {
  if (status opened = open_parts(); !opened) return opened.failure();
  result<bool> to_do = resume();
  if (!to_do) return to_do.failure();
  if (!*to_do) return exit_code::ok;
  show_start();
  result<exit_code> code = train_steps();
  if (!code) return code.failure();
  if (status finished = finish(*code); !finished) return finished.failure();
  return *code;
}

status training_run::open_parts() {
  if (status sound = model::check(description_); !sound) return sound.failure();
  result<model::data::dataset> data = model::data::dataset::open(training_data_from(settings()));
  if (!data) return data.failure();
  data_.emplace(std::move(*data));
  for (const std::string& note : data_->notes()) around_.screen.event(note);
  result<hash128> digest = data_->digest();
  if (!digest) return digest.failure();
  data_digest_ = digest->hex();

  device_ = executor_from(settings());
  trainer_ = std::make_unique<trainer>(*device_, description_, trainer_settings_from(settings()));
  const auto rows =
      static_cast<std::size_t>(settings().training.global_batch_size * settings().training.seq_len);
  tokens_.resize(rows);
  targets_.resize(rows);
  if (status opened = open_validation(); !opened) return opened.failure();

  result<step_log> steps = step_log::open(around_.files, directory_.file("steps.jsonl"));
  if (!steps) return steps.failure();
  steps_.emplace(std::move(*steps));
  result<event_log> events = event_log::open(around_.files, directory_.file("events.jsonl"),
                                             around_.clock, directory_.run_id());
  if (!events) return events.failure();
  events_.emplace(std::move(*events));
  return done{};
}

status training_run::open_validation() {
  if (!settings().validation.enable) return done{};
  result<model::data::dataset> data = model::data::dataset::open(validation_data_from(settings()));
  if (!data) return data.failure();
  const std::uint64_t all = data->windows();
  const std::uint64_t wanted =
      settings().validation.steps < 0
          ? all
          : static_cast<std::uint64_t>(settings().validation.steps *
                                       settings().training.global_batch_size);
  if (wanted > all) {
    around_.screen.event(fmt::format("validation uses all {} windows of {}; {} were asked for", all,
                                     settings().validation.path, wanted));
  }
  const auto rows = static_cast<std::size_t>(settings().validation.micro_batch_size *
                                             settings().training.seq_len);
  validation_ = std::make_unique<validation_set>(validation_set{
      std::move(*data), model::evaluation(trainer_->network(), rows), std::min(all, wanted)});
  return done{};
}

// Only what decides the bits has to be equal; the length of the run may grow.
status training_run::accept(const checkpoint::manifest& found) const {
  const checkpoint::facts& about = found.about;
  if (about.run_id != directory_.run_id()) {
    return error{exit_code::cannot_use,
                 fmt::format("the checkpoint of step {} belongs to run {}, this is run {}",
                             about.step, about.run_id, directory_.run_id())};
  }
  config::fingerprint before;
  for (const auto& [key, value] : about.config) before.push_back({key, value});
  const std::vector<config::difference> changed =
      config::differences(before, config::fingerprint_of(settings()));
  if (!changed.empty()) {
    return error{
        exit_code::bad_config,
        fmt::format(
            "this run cannot go on from step {} with other settings:\n{}\ngo back to those, or "
            "start anew with --run-dir",
            about.step, config::describe(changed))};
  }
  if (about.data_digest != data_digest_) {
    return error{
        exit_code::bad_config,
        fmt::format(
            "the training data changed since step {}: digest {} before, {} now; restore them, or "
            "start anew with --run-dir",
            about.step, about.data_digest, data_digest_)};
  }
  if (about.numerics_class != device_->numerics_class() ||
      about.numerics_version != static_cast<std::uint64_t>(compute::numerics_version)) {
    return error{
        exit_code::bad_config,
        fmt::format(
            "the checkpoint of step {} was computed in numerics class {} version {}, this program "
            "computes in {} version {}: the bits would change",
            about.step, about.numerics_class, about.numerics_version, device_->numerics_class(),
            compute::numerics_version)};
  }
  return done{};
}

result<bool> training_run::resume() {
  if (request_.resume.what == checkpoint::wanted::kind::none && steps_->last_step() > 0) {
    return error{
        exit_code::cannot_use,
        fmt::format(
            "{} has {} steps already and --resume never was asked for; choose another directory "
            "with --run-dir",
            directory_.path(), steps_->last_step())};
  }
  std::vector<checkpoint::layer_memory> memory;
  for (model::layer_state& layer : trainer_->state().layers) {
    memory.push_back({layer.parameters.all().host<float>(), layer.first_moment.all().host<float>(),
                      layer.second_moment.all().host<float>()});
  }
  result<checkpoint::resumed> found =
      checkpoint::resume(around_.files, checkpoints(), request_.resume, trainer_->layout(), memory,
                         [this](const checkpoint::manifest& m) { return accept(m); });
  if (!found) return found.failure();
  for (const std::string& line : found->skipped) around_.screen.event(line);
  if (found->from) {
    const checkpoint::facts& about = found->from->about;
    step_ = about.step;
    updates_ = about.updates;
    tokens_seen_ = about.tokens;
    history_ = about.history;
    if (step_ > steps_->last_step()) {
      return error{
          exit_code::io,
          fmt::format(
              "the checkpoint says step {}, but {} ends with step {}: the record was damaged or "
              "belongs to another run",
              step_, directory_.file("steps.jsonl"), steps_->last_step())};
    }
  } else {
    trainer_->initialize();
  }
  first_step_ = step_;
  if (step_ >= steps() && found->from) {
    around_.screen.say(fmt::format("{} is finished: step {} of {} is on disk (weights_hash {})",
                                   directory_.path(), step_, steps(),
                                   found->from->weights_hash.hex()));
    return false;
  }
  if (result<std::vector<std::string>> removed =
          checkpoint::remove_leftovers(around_.files, checkpoints());
      removed) {
    for (const std::string& name : *removed) {
      around_.screen.event(fmt::format("removed {}: what an interrupted save had left", name));
    }
  } else {
    return removed.failure();
  }
  json_line line = events_->begin("generation");
  line.u64("number", 0)
      .u64("members", 1)
      .u64("from_step", step_)
      .text("reason",
            found->from ? fmt::format("resumed from step {}", step_) : std::string("started"));
  if (status written = event(line); !written) return written.failure();
  return true;
}

void training_run::show_start() {
  const double flops =
      model::flops_per_token(description_, trainer_->layout(), trainer_->settings().seq_len);
  const int threads = device_->threads();
  report_.flops_per_token = flops;
  if (settings().metrics.peak_flops > 0) {
    report_.peak_flops = settings().metrics.peak_flops;
    report_.peak_source = "metrics.peak_flops";
  } else {
    report_.peak_flops = compute::cpu::measure_fma_peak(threads) * 1e9;
    report_.peak_source = fmt::format("measured fused multiply-adds, {} threads, {}", threads,
                                      compute::cpu::fma_instruction_set());
  }
  const model::batch_shape& batch = trainer_->settings().batch;
  const std::size_t step_tokens = batch.global_batch * trainer_->settings().seq_len;
  std::vector<std::pair<std::string, std::string>> facts = {
      {"troupe", version_text()},
      {"model", fmt::format("{}, {} layers, width {}, {} heads, vocabulary {}",
                            model::name_of(description_.family), description_.layers,
                            description_.width, description_.heads, description_.vocabulary)},
      {"parameters", short_count(static_cast<double>(model::parameter_count(trainer_->layout())))},
      {"tokens a step", fmt::format("{} ({} sequences of {})", step_tokens, batch.global_batch,
                                    trainer_->settings().seq_len)},
      {"data", fmt::format("{} tokens, {} windows an epoch, {} tokens left over", data_->tokens(),
                           data_->windows(), data_->unused_tokens())},
      {"plan", fmt::format("1 worker, {} threads, {} virtual ranks, micro-batch {}, {}", threads,
                           batch.virtual_ranks, batch.micro_batch, device_->numerics_class())},
      {"memory", fmt::format("activations {}, state {}",
                             short_bytes(static_cast<double>(trainer_->activation_bytes())),
                             short_bytes(12.0 * static_cast<double>(
                                                    model::parameter_count(trainer_->layout()))))},
      {"peak", fmt::format("{} FLOP/s ({}); {} FLOP a token", short_count(report_.peak_flops),
                           report_.peak_source, short_count(flops))},
      {"run directory", directory_.path()},
      {"run", directory_.run_id()}};
  if (step_ > 0) facts.emplace_back("resumed from", fmt::format("step {}", step_));
  around_.screen.start(facts);
}

result<exit_code> training_run::train_steps() {
  while (step_ < steps()) {
    if (const int signal = around_.stop_signal(); signal != 0) {
      json_line line = events_->begin("notice");
      line.text("signal", strsignal(signal)).u64("step", step_);
      if (status written = event(line); !written) return written.failure();
      around_.screen.event(
          fmt::format("told to stop ({}): saving step {}, then leaving with 75; the same command "
                      "resumes",
                      strsignal(signal), step_));
      return exit_code::interrupted;
    }
    if (status stepped = one_step(step_ + 1); !stepped) return stepped.failure();
    const auto freq = static_cast<std::uint64_t>(settings().validation.freq);
    if (validation_ && (step_ % freq == 0 || step_ == steps())) {
      if (status valid = validate_now(); !valid) return valid.failure();
    }
  }
  return exit_code::ok;
}

status training_run::one_step(std::uint64_t step) {
  const double start = now();
  const std::size_t width = trainer_->settings().seq_len;
  const std::size_t batch = trainer_->settings().batch.global_batch;
  const std::uint64_t position = model::data::first_position(step, batch);
  for (std::size_t i = 0; i < batch; ++i) {
    result<std::size_t> counted =
        data_->fill(position + i, std::span(tokens_).subspan(i * width, width),
                    std::span(targets_).subspan(i * width, width));
    if (!counted) return counted.failure();
  }
  last_ = trainer_->step(step, updates_, tokens_, targets_);
  step_ = step;
  updates_ = last_.updates;
  return record_step(last_, now() - start);
}

status training_run::record_step(const protocol::decision_record& decided, double seconds) {
  const auto tokens = static_cast<std::uint64_t>(decided.tokens);
  tokens_seen_ += tokens;
  tokens_now_ += tokens;
  in_steps_ += seconds;
  log_seconds_ += seconds;
  log_tokens_ += tokens;
  ++log_steps_;
  report_.final_loss = decided.loss;
  if (decided.step <= steps_->last_step()) ++report_.steps_redone;
  step_record record;
  record.step = decided.step;
  record.loss = decided.loss;
  record.grad_norm = decided.grad_norm;
  record.lr = static_cast<double>(decided.lr);
  record.tokens = tokens;
  record.skipped = decided.skip;
  record.seconds = seconds;
  if (status added = steps_->add(record); !added) return added.failure();

  const auto log_freq = static_cast<std::uint64_t>(settings().metrics.log_freq);
  const bool due = step_ == first_step_ + 1 || step_ % log_freq == 0 || step_ == steps();
  around_.screen.step(progress_now(log_seconds_ / static_cast<double>(log_steps_),
                                   static_cast<double>(log_tokens_) / std::max(log_seconds_, 1e-9)),
                      due);
  if (due) {
    log_seconds_ = 0;
    log_tokens_ = log_steps_ = 0;
  }
  return check_skips(decided);
}

progress training_run::progress_now(double seconds_per_step, double tokens_per_second) const {
  progress p;
  p.step = step_;
  p.steps = steps();
  p.loss = last_.loss;
  p.grad_norm = last_.grad_norm;
  p.lr = static_cast<double>(last_.lr);
  p.tokens_per_second = tokens_per_second;
  p.utilization = tokens_per_second * report_.flops_per_token / report_.peak_flops;
  p.eta = std::chrono::duration<double>(seconds_per_step * static_cast<double>(steps() - step_));
  p.skipped = last_.skip;
  return p;
}

status training_run::check_skips(const protocol::decision_record& decided) {
  if (!decided.skip) {
    skipped_in_a_row_ = 0;
    return done{};
  }
  ++report_.skipped_steps;
  ++skipped_in_a_row_;
  json_line line = events_->begin("step_skipped");
  line.u64("step", decided.step)
      .text("reason", decided.why_skipped)
      .u64("in_a_row", skipped_in_a_row_);
  if (status written = event(line); !written) return written.failure();
  around_.screen.event(fmt::format("step {} was skipped: {}; the parameters stay as they were",
                                   decided.step, decided.why_skipped));
  const auto most = static_cast<std::uint64_t>(settings().training.max_skipped_steps);
  if (skipped_in_a_row_ <= most) return done{};
  return error{
      exit_code::bad_data,
      fmt::format(
          "{} steps in a row were skipped, the last one is step {} ({}); "
          "training.max_skipped_steps "
          "is {}. The last checkpoint stays as it is; try a lower optimizer.lr, a longer warm-up, "
          "or look at the data of these steps",
          skipped_in_a_row_, decided.step, decided.why_skipped, most)};
}

status training_run::validate_now() {
  const std::size_t width = trainer_->settings().seq_len;
  result<validation_result> measured =
      validate(validation_->evaluation, trainer_->state(), width, validation_->windows,
               trainer_->settings().batch.virtual_ranks,
               [this](std::uint64_t window, std::span<std::int32_t> tokens,
                      std::span<std::int32_t> targets) -> status {
                 result<std::size_t> counted = validation_->data.fill(window, tokens, targets);
                 if (!counted) return counted.failure();
                 return done{};
               });
  if (!measured) return measured.failure();
  report_.val_loss = measured->loss;
  json_line line = events_->begin("validation");
  line.u64("step", step_)
      .number("loss", measured->loss)
      .u64("tokens", static_cast<std::uint64_t>(measured->tokens));
  if (status written = event(line); !written) return written.failure();
  around_.screen.say(fmt::format("step {:>{}}/{}  val_loss {:.4f}  tokens {}", step_,
                                 fmt::formatted_size("{}", steps()), steps(), measured->loss,
                                 short_count(measured->tokens)));
  return done{};
}

checkpoint::facts training_run::checkpoint_facts() const {
  checkpoint::facts about;
  about.run_id = directory_.run_id();
  about.step = step_;
  about.data_position = step_ * trainer_->settings().batch.global_batch;
  about.updates = updates_;
  about.tokens = tokens_seen_;
  about.model = description_;
  for (const config::printed_setting& s : config::fingerprint_of(settings())) {
    about.config.emplace_back(s.key, s.value);
  }
  about.numerics_class = device_->numerics_class();
  about.numerics_version = compute::numerics_version;
  about.data_digest = data_digest_;
  about.tokenizer = settings().tokenizer.type;
  about.record = to_json_record(last_);
  about.history = history_;
  if (about.history.empty() || about.history.back().step != step_) {
    about.history.push_back(
        {step_, fmt::format("trained from step {} by {}", first_step_, version_text())});
  }
  return about;
}

std::vector<checkpoint::state_view> training_run::state_views() {
  std::vector<checkpoint::state_view> views;
  for (const model::layer_state& layer : trainer_->state().layers) {
    views.push_back({layer.parameters.all().host<float>(), layer.first_moment.all().host<float>(),
                     layer.second_moment.all().host<float>()});
  }
  return views;
}

// Weights that are not finite are still written, for whoever wants to look at them, but never
// without a word.
status training_run::warn_if_not_finite() {
  for (std::size_t layer = 0; layer < trainer_->layout().size(); ++layer) {
    if (all_finite(trainer_->state().layers[layer].parameters.all().host<float>())) continue;
    const std::string& name = trainer_->layout()[layer].name;
    around_.screen.failure(
        fmt::format("the weights of {} at step {} are not all finite; an older checkpoint is "
                    "the one to go on from",
                    name, step_));
    json_line line = events_->begin("weights_not_finite");
    line.u64("step", step_).text("layer", name);
    if (status written = event(line); !written) return written.failure();
  }
  return done{};
}

status training_run::save() {
  if (status warned = warn_if_not_finite(); !warned) return warned.failure();
  const std::vector<checkpoint::state_view> views = state_views();
  const checkpoint::facts about = checkpoint_facts();
  if (!settings().checkpoint.enable) {
    const checkpoint::manifest m = checkpoint::make_manifest(about, trainer_->layout(), views);
    report_.weights_hash = m.weights_hash.hex();
    report_.state_hash = m.state_hash.hex();
    around_.screen.event("checkpoint.enable is false: nothing was saved");
    return done{};
  }
  json_line begun = events_->begin("checkpoint_started");
  begun.u64("step", step_);
  if (status written = event(begun); !written) return written.failure();
  if (status synced = steps_->sync(); !synced) return synced.failure();
  const double start = now();
  result<checkpoint::saved> saved = checkpoint::save(around_.files, checkpoints(), about, views);
  if (!saved) {
    json_line line = events_->begin("checkpoint_failed");
    line.u64("step", step_).text("reason", saved.failure().message);
    (void)event(line);  // the disk may be full; the cause is returned
    return error{saved.failure().code,
                 fmt::format("the save of step {} failed, older checkpoints are untouched: {}",
                             step_, saved.failure().message)};
  }
  report_.weights_hash = saved->weights_hash.hex();
  report_.state_hash = saved->state_hash.hex();
  json_line line = events_->begin("checkpoint_published");
  line.u64("step", step_)
      .text("folder", saved->folder)
      .u64("bytes", saved->bytes)
      .number("seconds", now() - start)
      .text("weights_hash", report_.weights_hash)
      .text("state_hash", report_.state_hash);
  return event(line);
}

status training_run::write_report(std::optional<int> exit) {
  report_.exit = exit;
  report_.steps = steps_ ? std::max(steps_->last_step(), step_) : step_;
  report_.seconds = now() - started_;
  report_.tokens_per_second = in_steps_ > 0 ? static_cast<double>(tokens_now_) / in_steps_ : 0;
  if (report_.peak_flops > 0) {
    report_.utilization = report_.tokens_per_second * report_.flops_per_token / report_.peak_flops;
  }
  report_.goodput = static_cast<double>(tokens_now_) / std::max(report_.seconds, 1e-9);
  report_.effective_time_ratio = in_steps_ / std::max(report_.seconds, 1e-9);
  report_.peak_memory_bytes = peak_memory();
  report_.peak_activation_bytes = trainer_ ? trainer_->activation_bytes() : 0;
  const std::string text = to_json(report_);
  if (status written = replace(around_.files, directory_.file("report.json"), text); !written) {
    return written.failure();
  }
  if (request_.report_file.empty()) return done{};
  return replace(around_.files, request_.report_file, text);
}

status training_run::finish(exit_code code) {
  if (status saved = save(); !saved) return saved.failure();
  json_line line = events_->begin("finished");
  line.i64("exit", static_cast<int>(code))
      .u64("step", step_)
      .text("reason", code == exit_code::ok ? "the last step is trained" : "told to stop");
  if (status written = event(line); !written) return written.failure();
  if (status written = write_report(static_cast<int>(code)); !written) return written.failure();
  around_.screen.say(fmt::format(
      "{} at step {} of {}  loss {:.4f}{}  weights_hash {}",
      code == exit_code::ok ? "finished" : "stopped", step_, steps(), report_.final_loss,
      report_.val_loss ? fmt::format("  val_loss {:.4f}", *report_.val_loss) : "",
      report_.weights_hash));
  if (report_.skipped_steps > 0)
    around_.screen.say(fmt::format("{} steps were skipped", report_.skipped_steps));
  around_.screen.say("report: " + directory_.file("report.json"));
  return done{};
}

}  // namespace troupe::actors
