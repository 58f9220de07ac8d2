#include "actors/rank.hpp"

#include <algorithm>
#include <chrono>
#include <map>

#include "actors/data_loader.hpp"
#include "actors/exchange.hpp"
#include "actors/messages.hpp"
#include "actors/optimizer_shard.hpp"
#include "actors/protocol/member_step.hpp"
#include "actors/stage.hpp"

namespace troupe::actors {
namespace {

class rank_state {
 public:
  static inline const char* name = "rank";

  void begin(caf::event_based_actor* self, shared_context around, run_store& store);

  void wait_for_parameters();
  void go(const protocol::go& m);
  void loaded(std::uint64_t step) {
    loaded_ = step;
    continue_if_possible();
  }
  void nodes_sent() { continue_if_possible(); }
  void computed(step_computed m) {
    computing_ = false;
    around_->lasting.doing = protocol::phase::waiting;
    if (abandoned_) return settle();
    take(progress_->computed(m.step, std::move(m.losses)));
  }
  void failed(const job_failed& m) {
    computing_ = false;
    if (!abandoned_) return around_->fail(m.why);
    settle();  // the computation was cancelled, as asked for
  }
  void ready(const block_ready& m) { take(progress_->block_ready(m.step, m.sum)); }
  void see(const protocol::record_notice& notice);
  void arrived(const protocol::parameters_header& header) {
    see(header.decided);
    block_at(header.block, header.decided.record.step);
  }
  void applied(const block_applied& m) {
    if (m.of_plan) ++applied_;
    if (computes()) block_at(m.block, m.version);
    settle();
  }
  void copy(const protocol::copy_plan& m);
  void copy_arrived(const state_arrived& m) {
    copies_to_take_.push_back(m);
    pass_on_copies();
  }
  void copied() {
    if (--layers_to_copy_ == 0) around_->mail.to_coordinator(protocol::copies_held{});
  }
  void measured(const validation_measured& m) {
    validating_ = false;
    around_->mail.to_coordinator(protocol::validation_share{m.step, m.losses});
    continue_if_possible();
    settle();
  }
  void save(const protocol::save_request& m) {
    save_ = m;
    settle();
  }

 private:
  bool computes() const { return around_->me().leaves > 0; }
  std::size_t layers() const { return around_->work.shape().layers.size(); }
  bool all_layers_here() const { return progress_->open_layers().size() == layers(); }

  void load(std::uint64_t step) {
    if (computes()) caf::anon_send(loader_, load_step{step});
  }
  void continue_if_possible();
  void take(result<std::optional<protocol::vote>> complete);
  void block_at(block_id block, std::uint64_t version);
  void pass_on_copies();
  void validate_if_asked();
  void settle();
  void tell_costs(protocol::step_facts& facts);

  shared_context around_;
  run_store* store_ = nullptr;
  caf::event_based_actor* actor_ = nullptr;
  caf::actor self_, stage_, loader_;
  std::vector<state_arrived> copies_to_take_;  // that wait for the same version's parameters
  std::size_t layers_to_copy_ = 0;
  std::optional<protocol::member_step> progress_;
  std::size_t held_ = 0;     // blocks, as primary or backup
  std::size_t applied_ = 0;  // of them, the newest record
  protocol::record_notice seen_;
  bool running_ = false;    // since go
  bool computing_ = false;  // the stage is at work
  bool stopped_ = false;    // the last record of this plan was seen
  bool abandoned_ = false;  // ... before the step that was being computed was decided
  bool validation_due_ = false, validating_ = false;
  std::uint64_t loaded_ = 0;
  time_since_start last_costs_{};
  std::optional<protocol::save_request> save_;
};

void rank_state::begin(caf::event_based_actor* self, shared_context around, run_store& store) {
  around_ = std::move(around);
  store_ = &store;
  actor_ = self;
  self_ = caf::actor_cast<caf::actor>(self);
  const std::vector<block_id> primary = protocol::blocks_primary(around_->plan, around_->self);
  const std::vector<block_id> backup = protocol::blocks_backed_up(around_->plan, around_->self);
  held_ = applied_ = primary.size() + backup.size();
  seen_.record.step = around_->plan.base;
  progress_.emplace(around_->work.shape().blocks_of_layers(), primary.size(),
                    around_->me().first_leaf, around_->me().leaves, around_->plan.base);
  if (computes() && !around_->lasting.parameters) wait_for_parameters();
  stage_ = spawn_stage(self, around_);
  loader_ = spawn_data_loader(self, around_);
  around_->mail.primary_shards.assign(layers(), {});
  around_->mail.backup_shards.assign(layers(), {});
  for (const block_id block : primary) {
    caf::actor& shard = around_->mail.primary_shards[block.layer];
    if (!shard) shard = spawn_optimizer_shard(self, around_, shard_role::primary, block.layer);
  }
  for (const block_id block : backup) {
    caf::actor& shard = around_->mail.backup_shards[block.layer];
    if (!shard) shard = spawn_optimizer_shard(self, around_, shard_role::backup, block.layer);
  }
}

// Who has not the parameters of the base waits for those of all blocks that it does not hold; the
// first of them may come before the sign to begin.
void rank_state::wait_for_parameters() {
  std::vector<block_id> missing;
  const std::vector<std::uint32_t> counts = around_->work.shape().blocks_of_layers();
  for (std::uint32_t layer = 0; layer < counts.size(); ++layer) {
    for (std::uint32_t b = 0; b < counts[layer]; ++b) {
      if (!around_->lasting.held.has({layer, b})) missing.push_back({layer, b});
    }
  }
  progress_->lacks(missing);
  around_->lasting.parameters = all_layers_here();
}

void rank_state::go(const protocol::go& m) {
  running_ = true;
  last_costs_ = around_->clock.now();
  if (around_->plan.verdict != "start") {
    around_->reached(protocol_point::resumed, progress_->step());
  }
  if (!m.without_parameters.empty()) {
    protocol::record_notice base;
    if (!around_->plan.records.empty()) base = around_->plan.records.back();
    base.record.step = around_->plan.base;
    base.last = base.validate = false;
    for (const caf::actor& shard : around_->mail.primary_shards) {
      if (shard) caf::anon_send(shard, give_parameters{m.without_parameters, base});
    }
  }
  validation_due_ = m.validate && computes();
  load(progress_->step());
  validate_if_asked();
  continue_if_possible();
}

// Begins the step if its samples are here, nothing still reads the nodes of the one before, and
// nothing else is to be done first.
void rank_state::continue_if_possible() {
  if (!running_ || stopped_ || computing_ || !computes()) return;
  if (validation_due_ || validating_) return;
  if (loaded_ != progress_->step() || around_->bulk.nodes_on_their_way()) return;
  computing_ = true;
  around_->lasting.doing = protocol::phase::computing;
  loaded_ = 0;
  around_->reached(protocol_point::step_begin, progress_->step());
  caf::anon_send(stage_, compute_step{progress_->step(), progress_->open_layers()});
  load(progress_->step() + 1);
}

void rank_state::take(result<std::optional<protocol::vote>> complete) {
  if (!complete) return around_->fail(complete.failure());
  if (!complete->has_value()) return;
  protocol::vote& vote = **complete;
  tell_costs(vote.facts);
  around_->points.voted(around_->self, vote);
  const sent_mark mark{protocol_point::voted, vote.step};
  around_->mail.to_coordinator(std::move(vote), mark);
}

// What the device did since the last vote; the rest of the time it had nothing to do.
void rank_state::tell_costs(protocol::step_facts& facts) {
  const work_seconds seconds = around_->work.take_seconds();
  facts.data = seconds.data;
  facts.forward = seconds.forward;
  facts.backward = seconds.backward;
  facts.reduce = seconds.reduce;
  facts.apply = seconds.apply;
  const time_since_start now = around_->clock.now();
  const double busy = seconds.forward + seconds.backward + seconds.reduce + seconds.apply;
  facts.wait = std::max(0.0, std::chrono::duration<double>(now - last_costs_).count() - busy);
  last_costs_ = now;
  const comm::traffic sent = around_->lanes.sent();
  facts.control_bytes = sent.control_bytes;
  facts.bulk_bytes = sent.bulk_bytes;
  facts.activation_bytes = around_->work.activation_bytes();
  if (around_->peak_memory) facts.peak_memory = around_->peak_memory();
}

void rank_state::see(const protocol::record_notice& notice) {
  const std::uint64_t step = notice.record.step;
  if (step + 1 == progress_->step() && notice.last && !stopped_) {
    // The plan ends at the version that is here; what is being computed will not be decided.
    stopped_ = abandoned_ = true;
    if (computing_) caf::anon_send(stage_, cancel_step{});
    return settle();
  }
  if (step != progress_->step()) return;  // seen before
  if (status decided = progress_->decided(step); !decided) return around_->fail(decided.failure());
  seen_ = notice;
  stopped_ = notice.last;
  applied_ = 0;
  computing_ = false;
  validation_due_ = notice.validate && computes();
  around_->lasting.see(notice);
  around_->lasting.parameters = false;
  around_->points.record_seen(around_->self, notice);
  around_->reached(protocol_point::commit_seen, step);
  around_->mail.to_coordinator(protocol::recorded{step});
  for (const auto& shards : {&around_->mail.primary_shards, &around_->mail.backup_shards}) {
    for (const caf::actor& shard : *shards) {
      if (shard) caf::anon_send(shard, step_decided{notice});
    }
  }
  continue_if_possible();
}

void rank_state::block_at(block_id block, std::uint64_t version) {
  result<std::optional<std::uint32_t>> opened = progress_->block_at(block, version);
  if (!opened) return around_->fail(opened.failure());
  pass_on_copies();
  if (!opened->has_value()) return;
  around_->lasting.parameters = all_layers_here();
  if (around_->lasting.parameters) around_->reached(protocol_point::params_complete, version);
  if (computing_) caf::anon_send(stage_, open_layer{**opened});
  validate_if_asked();
}

void rank_state::copy(const protocol::copy_plan& m) {
  std::map<std::uint32_t, std::vector<block_id>> mine;  // by layer
  for (const protocol::copy_plan::copy& c : m.copies) {
    if (c.to == around_->self && !around_->lasting.held.has(c.block)) {
      mine[c.block.layer].push_back(c.block);
    }
  }
  layers_to_copy_ = mine.size();
  for (const auto& [layer, blocks] : mine) {
    caf::actor& shard = around_->mail.backup_shards.at(layer);
    if (!shard) shard = spawn_optimizer_shard(actor_, around_, shard_role::backup, layer);
    caf::anon_send(shard, take_copies{blocks});
  }
}

// A copy counts as this block at its version, so where this member computes, the parameters of that
// version must be here: whoever is asked to promise answers for all of the block.
void rank_state::pass_on_copies() {
  std::erase_if(copies_to_take_, [this](const state_arrived& m) {
    const protocol::state_header& h = m.header;
    if (computes() && (progress_->step() != h.version + 1 || !progress_->has(h.block)))
      return false;
    caf::anon_send(around_->mail.backup_shards.at(h.block.layer), m);
    return true;
  });
}

void rank_state::validate_if_asked() {
  if (!validation_due_ || !all_layers_here()) return;
  validation_due_ = false;
  validating_ = true;
  around_->lasting.doing = protocol::phase::validating;
  around_->work.evaluate([me = self_, ctx = around_, step = seen_.record.step](
                             computation::trouble trouble, std::vector<leaf_loss> losses) {
    if (ctx->over) return;
    if (trouble) return ctx->fail(error_of(trouble));
    caf::anon_send(me, validation_measured{step, std::move(losses)});
  });
}

// Writes this member's blocks once all of them are at the version asked for and nothing computes.
void rank_state::settle() {
  if (!save_ || computing_ || validating_ || validation_due_ || applied_ < held_) return;
  const protocol::save_request request = *save_;
  save_.reset();
  if (request.step != seen_.record.step) {
    return around_->fail({exit_code::defect, "a save was asked for of another version"});
  }
  ++around_->lasting.writing;
  around_->lasting.doing = protocol::phase::saving;
  store_->write_blocks(request.step, request.folder,
                       protocol::blocks_primary(around_->plan, around_->self), around_->work,
                       [ctx = around_, request](result<protocol::save_share> written) {
                         --ctx->lasting.writing;
                         ctx->lasting.tell_if_still();
                         if (ctx->over) return;
                         protocol::save_share share;
                         if (written) {
                           share = std::move(*written);
                         } else {
                           share.failure = static_cast<int>(written.failure().code);
                           share.message = written.failure().message;
                         }
                         share.step = request.step;
                         ctx->mail.to_coordinator(std::move(share));
                       });
}

caf::behavior rank_actor(caf::stateful_actor<rank_state>* self, shared_context around,
                         run_store* store) {
  guard(self, around);
  self->state.begin(self, around, *store);
  return {
      while_current<incoming>(
          around,
          [self](const incoming& m) {
            if (const auto* notice = std::get_if<protocol::record_notice>(&m.what)) {
              self->state.see(*notice);
            } else if (const auto* save = std::get_if<protocol::save_request>(&m.what)) {
              self->state.save(*save);
            } else if (const auto* copies = std::get_if<protocol::copy_plan>(&m.what)) {
              self->state.copy(*copies);
            } else if (const auto* start = std::get_if<protocol::go>(&m.what)) {
              self->state.go(*start);
            }
          }),
      while_current<step_loaded>(around,
                                 [self](const step_loaded& m) { self->state.loaded(m.step); }),
      while_current<nodes_sent>(around, [self](const nodes_sent&) { self->state.nodes_sent(); }),
      while_current<step_computed>(around,
                                   [self](const step_computed& m) { self->state.computed(m); }),
      while_current<job_failed>(around, [self](const job_failed& m) { self->state.failed(m); }),
      while_current<block_ready>(around, [self](const block_ready& m) { self->state.ready(m); }),
      while_current<parameters_arrived>(
          around, [self](const parameters_arrived& m) { self->state.arrived(m.header); }),
      while_current<state_arrived>(around,
                                   [self](const state_arrived& m) { self->state.copy_arrived(m); }),
      while_current<copies_taken>(around, [self](const copies_taken&) { self->state.copied(); }),
      while_current<block_applied>(around,
                                   [self](const block_applied& m) { self->state.applied(m); }),
      while_current<validation_measured>(
          around, [self](const validation_measured& m) { self->state.measured(m); }),
  };
}

}  // namespace

caf::actor spawn_rank(caf::event_based_actor* parent, shared_context around, run_store& store) {
  return parent->spawn<caf::linked>(rank_actor, std::move(around), &store);
}

}  // namespace troupe::actors
