// The other half of training_run: the records, the port and the screen, of whichever member
// coordinates.
#include <fmt/format.h>

#include <algorithm>

#include "actors/from_settings.hpp"
#include "actors/machine.hpp"
#include "actors/training_run.hpp"
#include "actors/version.hpp"
#include "compute/cpu/kernels.hpp"
#include "config/fingerprint.hpp"
#include "model/checkpoint/choose.hpp"

namespace troupe::actors {
namespace {

std::string model_line(const model::description& d) {
  return fmt::format("{}, {} layers, width {}, {} heads, vocabulary {}", model::name_of(d.family),
                     d.layers, d.width, d.heads, d.vocabulary);
}

}  // namespace

// --- the role ---

status training_run::open_port() {
  if (around_.port == nullptr) return done{};
  result<std::uint16_t> opened = around_.port->open();
  if (!opened) return opened.failure();
  return done{};
}

result<monitor> training_run::open_monitor() {
  result<monitor> told =
      monitor::open(around_.files, directory_, around_.clock, around_.screen,
                    {.steps = steps(),
                     .log_freq = static_cast<std::uint64_t>(settings().metrics.log_freq),
                     .report_file = request_.report_file});
  if (told) show_on_board(*told);
  return told;
}

// On the helper thread, of a run that is under way. What the member that convened found out before
// the run is read from what it left behind.
result<monitor> training_run::take_over_records() {
  result<monitor> told = open_monitor();
  if (!told) return told;
  told->set_speed_facts(model::flops_per_token(description_, layout_, training_.seq_len), 0, "");
  if (convenes()) return told;
  start_.step = told->before().first_step;
  auto all = checkpoint::list(around_.files, checkpoints());
  if (!all) return all.failure();
  for (const checkpoint::listed& one : *all) {
    if (one.step == start_.step && one.contents) history_ = one.contents->about.history;
  }
  return told;
}

// Is the coordinator of the newest plan the same life of the same member as in `mine`?
result<bool> training_run::still_ours(const protocol::plan& mine) {
  if (!chain_) {
    result<plan_chain> opened =
        plan_chain::open(around_.files, directory_.path(), directory_.run_id());
    if (!opened) return opened.failure();
    chain_.emplace(std::move(*opened));
  } else if (result<bool> read = chain_->refresh(); !read) {
    return read.failure();
  }
  const std::optional<chained_plan>& head = chain_->head();
  if (!head || head->plan.number <= mine.number) return true;
  const protocol::plan_member* const now = head->plan.find(head->plan.coordinator);
  const protocol::plan_member* const me = mine.find(mine.coordinator);
  return now != nullptr && me != nullptr && now->id == me->id && now->life == me->life;
}

// --- what is shown ---

void training_run::measure_peak() {
  flops_per_token_ = model::flops_per_token(description_, layout_, training_.seq_len);
  const int threads = device_->threads();
  peak_flops_ = settings().metrics.peak_flops;
  peak_source_ = "metrics.peak_flops";
  if (peak_flops_ <= 0) {
    // Members are alike and on this machine: the peak of one, times as many as have cores at once.
    const double wanted = static_cast<double>(request_.place.expected) * threads;
    const double at_once = std::min(wanted, std::max<double>(usable_cores(), threads));
    peak_flops_ = compute::cpu::measure_fma_peak(threads) * 1e9 * at_once / threads;
    peak_source_ = fmt::format("measured fused multiply-adds, {:.0f} threads, {}", at_once,
                               compute::cpu::fma_instruction_set());
  }
  monitor_->set_speed_facts(flops_per_token_, peak_flops_, peak_source_);
}

std::string training_run::plan_line(const protocol::plan& p) const {
  std::size_t spares = 0;
  for (const protocol::plan_member& m : p.members) spares += m.leaves == 0 ? 1 : 0;
  return fmt::format(
      "{} worker{}{}, {} thread{} each, {} virtual ranks, micro-batch {}, {} backup{}"
      "{}, {}",
      p.members.size(), p.members.size() == 1 ? "" : "s",
      spares > 0 ? fmt::format(" ({} spare)", spares) : "", device_->threads(),
      device_->threads() == 1 ? "" : "s", p.virtual_ranks, training_.batch.micro_batch,
      settings().fault_tolerance.backups, settings().fault_tolerance.backups == 1 ? "" : "s",
      p.exposed ? " (exposed)" : "", device_->numerics_class());
}

member_status training_run::member_line(const protocol::plan& p,
                                        const protocol::plan_member& m) const {
  member_status seen;
  seen.id = m.id.value;
  seen.life = m.life;
  seen.name = m.name;
  seen.host = m.host;
  seen.state = m.leaves == 0 ? member_state::spare : member_state::active;
  seen.threads = device_->threads();
  std::uint64_t held = 0;
  for (const std::vector<block_id>& blocks :
       {protocol::blocks_primary(p, m.id), protocol::blocks_backed_up(p, m.id)}) {
    for (const block_id b : blocks) held += layout_[b.layer].block_size(b.block);
  }
  seen.memory_bytes[memory_kind::parameters] = 4 * model::parameter_count(layout_);
  seen.memory_bytes[memory_kind::optimizer] = 8 * held;
  return seen;
}

// A successor that cannot have the port goes on without: people see less, and nobody loses a step.
std::uint16_t training_run::port_now() {
  if (around_.port == nullptr) return 0;
  const result<std::uint16_t> opened = around_.port->open();
  if (opened) return *opened;
  around_.screen.event(opened.failure().message +
                       "; the run goes on without status and metrics until another member "
                       "coordinates");
  return 0;
}

record_writer_settings training_run::record_settings() {
  return {.open = [this] { return take_over_records(); },
          .rest =
              [this] {
                if (around_.port != nullptr) around_.port->close();
              },
          .still_ours = [this](const protocol::plan& mine) { return still_ours(mine); },
          .longest_pause = std::chrono::milliseconds(settings().fault_tolerance.suspect_ms),
          .show_start = [this](const protocol::plan& p) { show_start(p); },
          .plan_line = [this](const protocol::plan& p) { return plan_line(p); },
          .member_line = [this](const protocol::plan& p,
                                const protocol::plan_member& m) { return member_line(p, m); }};
}

void training_run::show_on_board(monitor& told) const {
  status_board& board = told.board();
  if (around_.port != nullptr) {
    board.publish_to([port = around_.port](std::shared_ptr<const world_status> s) {
      port->publish(std::move(s));
    });
  }
  world_status& seen = board.facts();
  seen.run = settings().job.name;
  seen.version = version_number();
  seen.commit = version_commit();
  seen.backends = "cpu";
  seen.model = model_line(description_);
  seen.config_digest = config::hash_of(config::fingerprint_of(settings())).hex();
  seen.stall_seconds = settings().fault_tolerance.stall_seconds;
}

void training_run::show_start(const protocol::plan& p) {
  const model::batch_shape& batch = training_.batch;
  const auto parameters = static_cast<double>(model::parameter_count(layout_));
  std::vector<std::pair<std::string, std::string>> facts = {
      {"troupe", version_text()},
      {"model", model_line(description_)},
      {"parameters", short_count(parameters)},
      {"tokens a step",
       fmt::format("{} ({} sequences of {})", batch.global_batch * training_.seq_len,
                   batch.global_batch, training_.seq_len)},
      {"data", fmt::format("{} tokens, {} windows an epoch, {} tokens left over", data_->tokens(),
                           data_->windows(), data_->unused_tokens())},
      {"plan", plan_line(p)},
      {"memory", fmt::format("parameters {} a member, moments {} and each backup",
                             short_bytes(4.0 * parameters), short_bytes(8.0 * parameters))},
      {"peak", fmt::format("{} FLOP/s ({}); {} FLOP a token", short_count(peak_flops_),
                           peak_source_, short_count(flops_per_token_))},
      {"run directory", directory_.path()},
      {"run", directory_.run_id()}};
  if (start_.step > 0) facts.emplace_back("resumed from", fmt::format("step {}", start_.step));
  around_.screen.start(facts);
}

}  // namespace troupe::actors
