#include "actors/training_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "actors/from_settings.hpp"
#include "actors/machine.hpp"
#include "actors/model_shape.hpp"
#include "actors/resume_identity.hpp"
#include "actors/version.hpp"
#include "comm/lone_transport.hpp"
#include "config/print.hpp"
#include "model/checkpoint/save.hpp"
#include "model/data/order.hpp"

namespace troupe::actors {
namespace {

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

window_source windows_of(const model::data::dataset& data) {
  return [&data](std::uint64_t at, std::span<std::int32_t> tokens,
                 std::span<std::int32_t> targets) -> status {
    result<std::size_t> counted = data.fill(at, tokens, targets);
    if (!counted) return counted.failure();
    return done{};
  };
}

// A secret that is never asked for: of a member that stays alone.
comm::secret unused_secret() { return comm::secret(std::array<std::byte, comm::secret::size>{}); }

}  // namespace

training_run::training_run(const run_directory& directory, const run_request& request,
                           const run_surroundings& around)
    : directory_(directory),
      request_(request),
      around_(around),
      description_(description_from(request.settings)),
      training_(trainer_settings_from(request.settings)),
      files_thread_(std::make_unique<helper_thread>()) {
  points_.faults = around.faults;
}

training_run::~training_run() {
  // First no more answers, which need the member's loop, then no more questions.
  files_thread_->end();
  member_.reset();
}

int training_run::run() {
  if (const std::optional<int> code = start()) return *code;
  comm::transport& transport = around_.transport != nullptr ? *around_.transport : *alone_;
  on_work([&transport] { transport.wake(); });
  // At most this long without looking for a notice to stop.
  constexpr std::chrono::milliseconds longest_sleep{50};
  while (true) {
    if (const std::optional<int> code = ended()) return *code;
    if (turn()) continue;
    std::chrono::nanoseconds sleep = longest_sleep;
    if (const auto due = next_timer()) sleep = std::min(sleep, *due - around_.clock.now());
    if (sleep <= std::chrono::nanoseconds(0)) continue;
    transport.wait(sleep, device_->busy() ? comm::waiting::patient : comm::waiting::eager);
  }
}

std::optional<int> training_run::start() {
  result<bool> to_do = prepare();
  if (!to_do) return finish({to_do.failure().code, to_do.failure().message, true});
  if (!*to_do && request_.place.expected == 1) return static_cast<int>(exit_code::ok);
  make_member();
  member_->start();
  return std::nullopt;
}

bool training_run::turn() {
  if (around_.faults != nullptr) around_.faults->turn();
  if (!run_stop_passed_on_) {
    if (const int signal = around_.stop_signal(decided_); signal != 0) {
      const bool run = !around_.stop_means_the_run || around_.stop_means_the_run();
      if (run || !stop_passed_on_) member_->ask_to_stop(strsignal(signal), run);
      stop_passed_on_ = true;
      run_stop_passed_on_ = run;
    }
  }
  if (around_.launcher_says) {
    while (const auto order = around_.launcher_says()) obey(*order);
  }
  return member_->turn();
}

void training_run::obey(const launcher_order& order) {
  if (const auto* leave = std::get_if<leave_order>(&order)) {
    return member_->ask_to_leave(leave->why);
  }
  const auto& note = std::get<world_note>(order);
  records_->world_asked_for(note.asked, note.from, note.to);
}

std::optional<int> training_run::ended() {
  if (!code_ && member_->ended()) code_ = finish(*member_->ended());
  return code_;
}

void training_run::on_work(std::function<void()> wake) {
  member_->driver().on_post(std::move(wake));
}

// Whoever has the cause tells it; the others only note for whom they stopped.
int training_run::finish(ending how) {
  const bool orderly = how.code == exit_code::ok || how.code == exit_code::interrupted;
  if (how.our_own) {
    around_.screen.failure(how.why);
  } else if (!orderly) {
    around_.screen.note("stopped for " + how.why);
  }
  // Told to stop before there was a plan: nobody else has recorded it.
  const bool before_plan = how.code == exit_code::interrupted && !points_.adopted;
  if (!orderly || before_plan) {
    // The helper thread may still write; it is done with its work before the last words.
    files_thread_->end();
    member_.reset();
    monitor* const told = records_ ? records_->last_words() : monitor_ ? &*monitor_ : nullptr;
    if (told == nullptr) return static_cast<int>(how.code);
    const std::uint64_t step = told->last_recorded_step();
    if (before_plan) {
      (void)told->told_to_stop(step, how.why);
      (void)told->finished(step, how.code);
    } else {
      told->failed(step, {how.code, how.why});
    }
  }
  return static_cast<int>(how.code);
}

// --- before the loop runs ---

result<bool> training_run::prepare() {
  // Asked for by the config, so it is an error of the start if it cannot be had; a successor goes
  // on without.
  if (convenes()) {
    if (status opened = open_port(); !opened) return opened.failure();
  }
  if (status opened = open_parts(); !opened) return opened.failure();
  if (!convenes()) return true;
  return choose_start();
}

status training_run::open_parts() {
  if (status sound = model::check(description_); !sound) return sound.failure();
  layout_ = model::make_layout(description_);
  result<model::data::dataset> data = model::data::dataset::open(training_data_from(settings()));
  if (!data) return data.failure();
  data_.emplace(std::move(*data));
  if (convenes()) {
    for (const std::string& note : data_->notes()) around_.screen.event(note);
  }
  result<hash128> digest = data_->digest();
  if (!digest) return digest.failure();
  data_digest_ = digest->hex();
  device_ = executor_from(settings());
  if (status opened = open_validation(); !opened) return opened.failure();
  if (!convenes()) return done{};

  result<monitor> told = open_monitor();
  if (!told) return told.failure();
  monitor_.emplace(std::move(*told));
  if (request_.place.expected > 1) monitor_->board().enter(run_state::waiting, "for members");
  monitor_->board().publish();
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
  if (wanted > all && convenes()) {
    around_.screen.event(fmt::format("validation uses all {} windows of {}; {} were asked for", all,
                                     settings().validation.path, wanted));
  }
  validation_windows_ = std::min(all, wanted);
  validation_data_.emplace(std::move(*data));
  return done{};
}

// The newest whole checkpoint that the request allows. Every block of it is read and compared here,
// because a member that finds a damaged one later could only end the whole world's start.
result<std::optional<checkpoint::manifest>> training_run::choose_checkpoint() {
  const run_identity now{directory_.run_id(), config::fingerprint_of(settings()), data_digest_,
                         device_->numerics_class(),
                         static_cast<std::uint64_t>(compute::numerics_version)};
  auto all = checkpoint::list(around_.files, checkpoints());
  if (!all) return all.failure();
  while (true) {
    auto chosen = checkpoint::choose(*all, request_.resume);
    if (!chosen) return chosen.failure();
    if (!chosen->index) {
      for (const std::string& line : chosen->skipped) around_.screen.event(line);
      return std::optional<checkpoint::manifest>();
    }
    checkpoint::listed& entry = (*all)[*chosen->index];
    if (status same = check_identity(entry.contents->about, now); !same) return same.failure();
    auto verified = checkpoint::verify(around_.files, entry.folder);
    if (verified) {
      for (const std::string& line : chosen->skipped) around_.screen.event(line);
      return std::optional(std::move(*verified));
    }
    entry.state = checkpoint::condition::damaged;
    entry.why = verified.failure().message;
  }
}

result<bool> training_run::choose_start() {
  const std::uint64_t recorded = monitor_->last_recorded_step();
  if (request_.resume.what == checkpoint::wanted::kind::none && recorded > 0) {
    return error{exit_code::cannot_use,
                 fmt::format("{} has {} steps already and --resume never was asked for; choose "
                             "another directory with --run-dir",
                             directory_.path(), recorded)};
  }
  result<std::optional<checkpoint::manifest>> found = choose_checkpoint();
  if (!found) return found.failure();
  if (*found) {
    const checkpoint::facts& about = (*found)->about;
    start_ = {about.step, about.updates, about.tokens, about.step >= steps()};
    decided_ = about.step;
    history_ = about.history;
    if (start_.step > recorded) {
      return error{exit_code::io,
                   fmt::format("the checkpoint says step {}, but {} ends with step {}: the record "
                               "was damaged or belongs to another run",
                               start_.step, directory_.file("steps.jsonl"), recorded)};
    }
    if (start_.finished) {
      around_.screen.say(fmt::format("{} is finished: step {} of {} is on disk (weights_hash {})",
                                     directory_.path(), start_.step, steps(),
                                     (*found)->weights_hash.hex()));
      if (status told = monitor_->was_finished(**found); !told) return told.failure();
      return false;
    }
  }
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
  measure_peak();
  return true;
}

// --- the member ---

void training_run::make_member() {
  if (around_.transport == nullptr) alone_ = std::make_unique<comm::lone_transport>();
  comm::transport& transport = alone_ ? *alone_ : *around_.transport;
  const worker_settings worker = worker_settings_now();
  const introductions_settings gate{
      .me = worker.me,
      .key = around_.secret.value_or(unused_secret()),
      .patience = std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::duration<double>(settings().comm.handshake_seconds))};
  member_ = std::make_unique<member>(
      member_settings{around_.clock, transport, points_, worker, coordinator_settings_now(), gate},
      [this](loop& driver) {
        const post_function to_loop = [&driver](std::function<void()> call) {
          driver.post(std::move(call));
        };
        store_ = std::make_unique<file_run_store>(
            around_.files, directory_, layout_, *files_thread_, to_loop,
            file_store_settings{
                .start = start_,
                .checkpoints = checkpoints(),
                .http_port = [this] { return port_now(); },
                .about = [this](const save_facts& f) { return checkpoint_facts(f); }});
        records_ = std::make_unique<record_writer>(std::exchange(monitor_, std::nullopt),
                                                   around_.screen, around_.clock, *files_thread_,
                                                   to_loop, record_settings());
        points_.records = records_.get();
        sample_sources sources;
        sources.training = windows_of(*data_);
        if (validation_data_) {
          sources.validation = windows_of(*validation_data_);
          sources.validation_windows = validation_windows_;
          sources.validation_at_once = static_cast<std::size_t>(
              std::min(validation_windows_,
                       static_cast<std::uint64_t>(settings().validation.micro_batch_size)));
        }
        std::unique_ptr<computation> work = std::make_unique<model_computation>(
            *device_, description_, training_, sources, to_loop);
        if (around_.faults != nullptr) work = around_.faults->around(std::move(work), *device_);
        return member_outside{*store_, *records_, std::move(work)};
      });
}

worker_settings training_run::worker_settings_now() const {
  worker_settings w;
  w.me.run_id = directory_.run_id();
  w.me.build = version_text();
  w.me.config_digest = config::hash_of(config::fingerprint_of(settings())).hex();
  w.me.numerics_class = device_->numerics_class();
  w.me.slot = request_.place.name;
  w.me.wish = member_id(request_.place.slot);
  w.me.life = request_.place.life;
  w.me.host = host_name();
  w.me.domain = settings().elastic.domain.empty() ? w.me.host : settings().elastic.domain;
  const comm::transport& transport = alone_ ? *alone_ : *around_.transport;
  w.me.address = comm::to_text(const_cast<comm::transport&>(transport).control().local_address());
  w.me.threads = static_cast<std::uint64_t>(device_->threads());
  w.me.speed = w.me.threads;
  w.convenes = convenes();
  w.expected = request_.place.expected;
  w.convener = member_id(0);
  w.virtual_ranks = static_cast<std::uint32_t>(training_.batch.virtual_ranks);
  const auto& f = settings().fault_tolerance;
  w.backups = static_cast<std::uint32_t>(f.backups);
  w.link_first = std::chrono::milliseconds(100);
  w.min_members = static_cast<std::uint32_t>(settings().elastic.min_members);
  w.spares = settings().elastic.spare_policy == "none" ? protocol::spare_policy::none
                                                       : protocol::spare_policy::backups;
  w.heartbeat = std::chrono::milliseconds(f.heartbeat_ms);
  w.joins = request_.place.joins;
  w.suspect = std::chrono::milliseconds(f.suspect_ms);
  w.evict = std::chrono::milliseconds(f.evict_ms);
  const auto seconds = [](double s) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(s));
  };
  w.wait_for_members = seconds(settings().elastic.wait_timeout_seconds);
  w.wait_for_convener = seconds(settings().comm.init_timeout_seconds);
  w.peak_memory = peak_bytes_of_this_process;
  return w;
}

coordinator_settings training_run::coordinator_settings_now() {
  coordinator_settings c;
  c.steps = steps();
  c.max_norm = training_.max_norm;
  c.skip_nonfinite = training_.skip_nonfinite;
  c.max_skipped_steps = static_cast<std::uint64_t>(settings().training.max_skipped_steps);
  c.validation_freq =
      settings().validation.enable ? static_cast<std::uint64_t>(settings().validation.freq) : 0;
  c.keep = settings().checkpoint.enable;
  c.asked_to_stop = [this](std::uint64_t step) -> std::string {
    decided_ = step;
    const int signal = around_.stop_signal(step);
    return signal != 0 ? strsignal(signal) : "";
  };
  c.rate = [schedule = training_.schedule](std::uint64_t step) { return schedule.rate(step); };
  return c;
}

checkpoint::facts training_run::checkpoint_facts(const save_facts& facts) const {
  checkpoint::facts about;
  about.run_id = directory_.run_id();
  about.step = facts.step;
  about.data_position = model::data::first_position(facts.step + 1, training_.batch.global_batch);
  about.updates = facts.updates;
  about.tokens = facts.tokens;
  about.model = description_;
  for (const config::printed_setting& s : config::fingerprint_of(settings())) {
    about.config.emplace_back(s.key, s.value);
  }
  about.numerics_class = device_->numerics_class();
  about.numerics_version = compute::numerics_version;
  about.data_digest = data_digest_;
  about.tokenizer = settings().tokenizer.type;
  about.record = to_json_record(facts.record);
  about.history = history_;
  about.history.push_back(
      {facts.step, fmt::format("trained from step {} by {}", start_.step, version_text())});
  return about;
}

}  // namespace troupe::actors
