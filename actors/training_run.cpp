#include "actors/training_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "actors/from_settings.hpp"
#include "actors/machine.hpp"
#include "actors/resume_identity.hpp"
#include "actors/validation.hpp"
#include "actors/version.hpp"
#include "compute/cpu/kernels.hpp"
#include "config/print.hpp"
#include "model/checkpoint/save.hpp"

namespace troupe::actors {
namespace {

// How long a step may go on after a notice to stop.
constexpr double patience_seconds = 5;

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

// Bits as integers: a record has to come back exactly.
nlohmann::json to_json_record(const protocol::decision_record& r) {
  return {{"step", r.step},
          {"updates", r.updates},
          {"skip", r.skip},
          {"scale_bits", std::bit_cast<std::uint32_t>(r.scale)},
          {"lr_bits", std::bit_cast<std::uint32_t>(r.lr)},
          {"loss_bits", std::bit_cast<std::uint64_t>(r.loss)},
          {"grad_norm_bits", std::bit_cast<std::uint64_t>(r.grad_norm)},
          {"tokens", static_cast<std::uint64_t>(r.tokens)}};
}

std::string model_line(const model::description& d) {
  return fmt::format("{}, {} layers, width {}, {} heads, vocabulary {}", model::name_of(d.family),
                     d.layers, d.width, d.heads, d.vocabulary);
}

// Fills window after window; the count of targets that count is not needed here.
status fill(const model::data::dataset& data, std::uint64_t position,
            std::span<std::int32_t> tokens, std::span<std::int32_t> targets) {
  result<std::size_t> counted = data.fill(position, tokens, targets);
  if (!counted) return counted.failure();
  return done{};
}

}  // namespace

training_run::training_run(const run_directory& directory, const run_request& request,
                           const run_surroundings& around)
    : directory_(directory),
      request_(request),
      around_(around),
      description_(description_from(request.settings)) {}

training_run::~training_run() = default;

int training_run::run() {
  result<exit_code> end = run_to_the_end();
  if (end) return static_cast<int>(*end);
  around_.screen.failure(end.failure().message);
  if (monitor_) monitor_->failed(step_, end.failure());
  return static_cast<int>(end.failure().code);
}

result<exit_code> training_run::run_to_the_end() {
  if (status opened = open_parts(); !opened) return opened.failure();
  result<bool> to_do = resume();
  if (!to_do) return to_do.failure();
  if (!*to_do) return exit_code::ok;
  show_start();
  result<exit_code> code = train_steps();
  if (!code) return code.failure();
  if (status saved = save(); !saved) return saved.failure();
  if (status told = monitor_->finished(step_, *code); !told) return told.failure();
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
  const std::size_t rows = trainer_->settings().batch.global_batch * trainer_->settings().seq_len;
  tokens_.resize(rows);
  targets_.resize(rows);
  if (status opened = open_validation(); !opened) return opened.failure();

  result<monitor> told =
      monitor::open(around_.files, directory_, around_.clock, around_.screen,
                    {.steps = steps(),
                     .log_freq = static_cast<std::uint64_t>(settings().metrics.log_freq),
                     .report_file = request_.report_file});
  if (!told) return told.failure();
  monitor_.emplace(std::move(*told));
  show_on_board();
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
  const std::uint64_t windows = std::min(all, wanted);
  const std::uint64_t at_once =
      std::min(windows, static_cast<std::uint64_t>(settings().validation.micro_batch_size));
  validation_ = std::make_unique<validation_set>(validation_set{
      std::move(*data),
      model::evaluation(trainer_->network(), at_once * trainer_->settings().seq_len), windows});
  return done{};
}

result<bool> training_run::resume() {
  const std::uint64_t recorded = monitor_->last_recorded_step();
  if (request_.resume.what == checkpoint::wanted::kind::none && recorded > 0) {
    return error{exit_code::cannot_use,
                 fmt::format("{} has {} steps already and --resume never was asked for; choose "
                             "another directory with --run-dir",
                             directory_.path(), recorded)};
  }
  const run_identity now{directory_.run_id(), config::fingerprint_of(settings()), data_digest_,
                         device_->numerics_class(),
                         static_cast<std::uint64_t>(compute::numerics_version)};
  const std::vector<checkpoint::state_memory> memory = checkpoint::memory_of(trainer_->state());
  result<checkpoint::resumed> found = checkpoint::resume(
      around_.files, checkpoints(), request_.resume, trainer_->layout(),
      checkpoint::whole_layers(trainer_->layout(), memory),
      [&now](const checkpoint::manifest& m) { return check_identity(m.about, now); });
  if (!found) return found.failure();
  for (const std::string& line : found->skipped) around_.screen.event(line);
  if (found->from) {
    const checkpoint::facts& about = found->from->about;
    step_ = about.step;
    updates_ = about.updates;
    tokens_seen_ = about.tokens;
    history_ = about.history;
    if (step_ > recorded) {
      return error{exit_code::io,
                   fmt::format("the checkpoint says step {}, but {} ends with step {}: the record "
                               "was damaged or belongs to another run",
                               step_, directory_.file("steps.jsonl"), recorded)};
    }
    if (step_ >= steps()) {
      around_.screen.say(fmt::format("{} is finished: step {} of {} is on disk (weights_hash {})",
                                     directory_.path(), step_, steps(),
                                     found->from->weights_hash.hex()));
      if (status told = monitor_->was_finished(*found->from); !told) return told.failure();
      return false;
    }
  } else {
    trainer_->initialize();
  }
  first_step_ = step_;
  result<std::vector<std::string>> removed =
      checkpoint::remove_leftovers(around_.files, checkpoints());
  if (!removed) return removed.failure();
  for (const std::string& name : *removed) {
    around_.screen.event(fmt::format("removed {}: what an interrupted save had left", name));
  }
  // Only now: a refused resume leaves the directory as it was.
  if (status written = directory_.write_config(around_.files, config::show_toml(settings()));
      !written) {
    return written.failure();
  }
  const world_facts alone{
      .number = 0,
      .members = 1,
      .computing = 1,
      .plan_hash = "",
      .plan_line = plan_line(),
      .reason = step_ > 0 ? fmt::format("resumed from step {}", step_) : "started"};
  if (status told = monitor_->started(step_, alone); !told) return told.failure();
  return true;
}

std::string training_run::plan_line() const {
  const model::batch_shape& batch = trainer_->settings().batch;
  return fmt::format("1 worker, {} threads, {} virtual ranks, micro-batch {}, {}",
                     device_->threads(), batch.virtual_ranks, batch.micro_batch,
                     device_->numerics_class());
}

void training_run::show_on_board() {
  status_board& board = monitor_->board();
  board.publish_to(around_.publish);
  world_status& seen = board.facts();
  seen.run = settings().job.name;
  seen.version = version_number();
  seen.commit = version_commit();
  seen.backends = "cpu";
  seen.model = model_line(description_);
  seen.config_digest = config::hash_of(config::fingerprint_of(settings())).hex();
  seen.stall_seconds = settings().fault_tolerance.stall_seconds;
  member_status self;
  self.name = "worker-0";
  self.host = host_name();
  self.threads = device_->threads();
  const auto parameters = static_cast<std::uint64_t>(model::parameter_count(trainer_->layout()));
  self.memory_bytes[memory_kind::parameters] = 4 * parameters;
  self.memory_bytes[memory_kind::optimizer] = 8 * parameters;
  self.memory_bytes[memory_kind::activations] = trainer_->activation_bytes();
  board.plan(0, plan_line(), {self});
  board.publish();
  note_peaks();
}

void training_run::note_peaks() {
  monitor_->set_peaks("worker-0", facts_of_this_process().peak_bytes, trainer_->activation_bytes());
}

void training_run::show_start() {
  const std::size_t seq_len = trainer_->settings().seq_len;
  const double flops = model::flops_per_token(description_, trainer_->layout(), seq_len);
  const int threads = device_->threads();
  double peak = settings().metrics.peak_flops;
  std::string peak_source = "metrics.peak_flops";
  if (peak <= 0) {
    peak = compute::cpu::measure_fma_peak(threads) * 1e9;
    peak_source = fmt::format("measured fused multiply-adds, {} threads, {}", threads,
                              compute::cpu::fma_instruction_set());
  }
  monitor_->set_speed_facts(flops, peak, peak_source);

  const model::batch_shape& batch = trainer_->settings().batch;
  const auto parameters = static_cast<double>(model::parameter_count(trainer_->layout()));
  const auto activations = static_cast<double>(trainer_->activation_bytes());
  std::vector<std::pair<std::string, std::string>> facts = {
      {"troupe", version_text()},
      {"model", model_line(description_)},
      {"parameters", short_count(parameters)},
      {"tokens a step", fmt::format("{} ({} sequences of {})", batch.global_batch * seq_len,
                                    batch.global_batch, seq_len)},
      {"data", fmt::format("{} tokens, {} windows an epoch, {} tokens left over", data_->tokens(),
                           data_->windows(), data_->unused_tokens())},
      {"plan", plan_line()},
      {"memory", fmt::format("activations {}, parameters and moments {}", short_bytes(activations),
                             short_bytes(12.0 * parameters))},
      {"peak", fmt::format("{} FLOP/s ({}); {} FLOP a token", short_count(peak), peak_source,
                           short_count(flops))},
      {"run directory", directory_.path()},
      {"run", directory_.run_id()}};
  if (step_ > 0) facts.emplace_back("resumed from", fmt::format("step {}", step_));
  around_.screen.start(facts);
}

result<exit_code> training_run::train_steps() {
  const auto validation_freq = static_cast<std::uint64_t>(settings().validation.freq);
  while (step_ < steps()) {
    if (const int signal = around_.stop_signal(); signal != 0) {
      if (status told = monitor_->told_to_stop(step_, strsignal(signal)); !told) {
        return told.failure();
      }
      return exit_code::interrupted;
    }
    const std::uint64_t before = step_;
    if (status stepped = one_step(before + 1); !stepped) return stepped.failure();
    if (step_ == before) continue;  // given up for a notice, which is told above
    if (validation_ && (step_ % validation_freq == 0 || step_ == steps())) {
      if (status valid = validate_now(); !valid) return valid.failure();
    }
  }
  return exit_code::ok;
}

status training_run::one_step(std::uint64_t step) {
  const double start = monitor_->now();
  const std::size_t width = trainer_->settings().seq_len;
  const std::size_t batch = trainer_->settings().batch.global_batch;
  const std::uint64_t position = model::data::first_position(step, batch);
  for (std::size_t i = 0; i < batch; ++i) {
    if (status filled = fill(*data_, position + i, std::span(tokens_).subspan(i * width, width),
                             std::span(targets_).subspan(i * width, width));
        !filled) {
      return filled.failure();
    }
  }
  // A step that takes long is given up for a notice: it is computed again after the resume, with
  // the same bits. A short one is finished.
  const auto give_up = [this, start] {
    return monitor_->now() - start > patience_seconds && around_.stop_signal() != 0;
  };
  const std::optional<protocol::decision_record> decided =
      trainer_->step(step, updates_, tokens_, targets_, give_up);
  if (!decided) return done{};
  last_ = *decided;
  step_ = step;
  updates_ = last_.updates;
  tokens_seen_ += static_cast<std::uint64_t>(last_.tokens);
  note_peaks();
  if (member_status* self = monitor_->board().member(member_id{0})) self->step = step;
  if (status told = monitor_->step(last_, monitor_->now() - start); !told) return told.failure();
  return count_skips();
}

status training_run::count_skips() {
  skipped_in_a_row_ = last_.skip ? skipped_in_a_row_ + 1 : 0;
  const auto most = static_cast<std::uint64_t>(settings().training.max_skipped_steps);
  if (skipped_in_a_row_ <= most) return done{};
  return error{exit_code::bad_data,
               fmt::format("{} steps in a row were skipped, the last one is step {} ({}); "
                           "training.max_skipped_steps is {}. The last checkpoint stays as it is; "
                           "try a lower optimizer.lr, a longer warm-up, or look at the data of "
                           "these steps",
                           skipped_in_a_row_, last_.step, last_.why_skipped, most)};
}

status training_run::validate_now() {
  result<validation_result> measured =
      validate(validation_->evaluation, trainer_->state(), trainer_->settings().seq_len,
               validation_->windows, trainer_->settings().batch.virtual_ranks,
               [this](std::uint64_t window, std::span<std::int32_t> tokens,
                      std::span<std::int32_t> targets) {
                 return fill(validation_->data, window, tokens, targets);
               });
  if (!measured) return measured.failure();
  return monitor_->validated(step_, *measured);
}

checkpoint::facts training_run::checkpoint_facts() const {
  checkpoint::facts about;
  about.run_id = directory_.run_id();
  about.step = step_;
  about.data_position =
      model::data::first_position(step_ + 1, trainer_->settings().batch.global_batch);
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
  about.history.push_back(
      {step_, fmt::format("trained from step {} by {}", first_step_, version_text())});
  return about;
}

// Weights that are not finite are still written, for whoever wants to look at them, but never
// without a word.
status training_run::warn_if_not_finite() {
  for (std::size_t layer = 0; layer < trainer_->layout().size(); ++layer) {
    if (all_finite(trainer_->state().layers[layer].parameters.all().host<float>())) continue;
    if (status told = monitor_->weights_not_finite(step_, trainer_->layout()[layer].name); !told) {
      return told.failure();
    }
  }
  return done{};
}

status training_run::save() {
  if (status warned = warn_if_not_finite(); !warned) return warned.failure();
  const std::vector<checkpoint::state_view> views =
      checkpoint::views_of(checkpoint::memory_of(trainer_->state()));
  const checkpoint::facts about = checkpoint_facts();
  if (!settings().checkpoint.enable) {
    const checkpoint::manifest m = checkpoint::make_manifest(about, trainer_->layout(), views);
    monitor_->set_hashes(m.weights_hash, m.state_hash);
    around_.screen.event("checkpoint.enable is false: nothing was saved");
    return done{};
  }
  if (status told = monitor_->save_begins(step_); !told) return told.failure();
  const double start = monitor_->now();
  result<checkpoint::saved> saved = checkpoint::save(around_.files, checkpoints(), about, views);
  if (saved) return monitor_->saved(step_, *saved, monitor_->now() - start);
  (void)monitor_->save_failed(step_, saved.failure());  // the disk may be full; the cause goes on
  return error{saved.failure().code,
               fmt::format("the save of step {} failed, older checkpoints are untouched: {}", step_,
                           saved.failure().message)};
}

}  // namespace troupe::actors
