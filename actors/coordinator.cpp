#include "actors/coordinator.hpp"

#include <algorithm>

#include "actors/messages.hpp"
#include "actors/protocol/step_collector.hpp"
#include "config/base/tree.hpp"

namespace troupe::actors {
namespace {

using protocol::decision_record;
using protocol::record_notice;

// The coordinator's messages to itself: answers of store and recorder, and the end of patience.
struct line_written {
  std::uint64_t step;
};
struct folder_ready {
  std::string folder;
};
struct save_finished {
  saved_hashes hashes;
};
struct records_complete {};
struct patience_over {
  std::uint64_t step;
};
struct trouble {
  error why;
};

}  // namespace
}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::line_written)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::folder_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::save_finished)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::records_complete)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::patience_over)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::trouble)

namespace troupe::actors {
namespace {

class coordinator_state {
 public:
  static inline const char* name = "coordinator";

  void begin(caf::event_based_actor* self, shared_context around,
             const coordinator_surroundings& surroundings, const coordinator_start& start);

  void take(const incoming& m);
  void want_change();
  void copy(const std::vector<protocol::copy_plan::copy>& copies);
  void written(std::uint64_t step);
  void write_into(const std::string& folder);
  void saved(const saved_hashes& hashes);
  void close();
  void give_up_step(std::uint64_t step);
  void fail(const error& why) {
    if (phase_ != phase::saving) return around_->fail(why);
    surroundings_->store.abandon_save(done_, folder_);
    records().save_failed(done_, why);
    around_->fail({why.code, "the save of step " + std::to_string(done_) +
                                 " failed, older checkpoints are untouched: " + why.message});
  }

 private:
  enum class phase : std::uint8_t {
    asleep,
    gathering,
    waiting,  // for more members
    stepping,
    changing,  // the plan's last step is decided; the next plan follows
    ending,
    saving,
    closing
  };

  void has_address(member_id who, const std::vector<std::byte>& where);
  void begin_steps();
  void wait_for_members();
  void say_go();
  void say_no_more_steps();
  void mark(const char* what, member_id who);
  void is_ready(member_id who, const protocol::ready& how);
  void collect(member_id from, const protocol::vote& v);
  void decide(const protocol::step_votes& sums);
  void count_skips(const decision_record& record);
  void recorded(member_id by, std::uint64_t step);
  void announce_stable(std::uint64_t upto);
  void announce(const committed_step& step);
  void copied(member_id who);
  void collect(const protocol::validation_share& share);
  void stop(const std::string& why);
  void end_if_complete();
  void collect(member_id from, const protocol::save_share& share);

  recorder& records() { return surroundings_->records; }
  const coordinator_settings& settings() const { return surroundings_->settings; }
  template <class T, class Message>
  run_store::answer<T> tell(Message make) {
    return [me = self_, make](result<T> r) {
      if (!r) return caf::anon_send(me, trouble{r.failure()});
      caf::anon_send(me, make(std::move(*r)));
    };
  }

  shared_context around_;
  const coordinator_surroundings* surroundings_ = nullptr;
  caf::event_based_actor* actor_ = nullptr;
  caf::actor self_;
  phase phase_ = phase::asleep;
  std::map<member_id, std::vector<std::byte>> addresses_;
  std::set<member_id> ready_;
  std::optional<protocol::step_collector> steps_;

  std::uint64_t done_ = 0;  // newest decided step
  std::uint64_t updates_ = 0, tokens_ = 0;
  std::uint64_t lines_ = 0;  // steps whose lines are known to be written
  std::uint64_t skipped_in_a_row_ = 0;
  decision_record last_;
  record_notice notice_;
  std::map<std::uint64_t, committed_step> unstable_;  // decided, not yet stable
  std::map<member_id, protocol::step_facts> facts_;
  std::string stop_why_, waits_for_;
  bool change_wanted_ = false;
  std::set<member_id> without_parameters_;
  std::vector<protocol::copy_plan::copy> copies_;
  std::set<member_id> copying_;  // who still waits for copies

  std::uint64_t validating_ = 0;  // the step whose validation is being measured, 0: none
  std::map<std::uint32_t, protocol::leaf_loss> validation_;

  std::string folder_;
  std::map<member_id, protocol::save_share> shares_;
  std::string not_finite_in_;  // a layer with a parameter that is no finite number
};

void coordinator_state::begin(caf::event_based_actor* self, shared_context around,
                              const coordinator_surroundings& surroundings,
                              const coordinator_start& start) {
  around_ = std::move(around);
  surroundings_ = &surroundings;
  actor_ = self;
  self_ = caf::actor_cast<caf::actor>(self);
  if (around_->plan.coordinator != around_->self) return;
  phase_ = phase::gathering;
  steps_.emplace(around_->plan, around_->work.shape().blocks_of_layers());
  const starting_point& from = start.from;
  done_ = lines_ = from.step;
  updates_ = from.updates;
  tokens_ = from.tokens;
  copies_ = start.copies;
  waits_for_ = start.waits_for;
  for (const protocol::copy_plan::copy& c : copies_) copying_.insert(c.to);
  if (around_->plan.verdict == "start") return records().started(around_->plan, from);
  records().goes_on(around_->plan, from, start.how);
  if (copies_.empty()) around_->reached(protocol_point::redundancy_restored, from.step + 1);
  if (start.waited) {
    records().members_are_here(std::chrono::duration<double>(*start.waited).count());
  }
  if (around_->plan.records.empty()) return;
  // Linking the plan made all of them stable. Some lines may not be written yet.
  const protocol::record_notice& newest = around_->plan.records.back();
  last_ = newest.record;
  skipped_in_a_row_ = newest.skipped_in_a_row;
  lines_ = around_->plan.records.front().record.step - 1;
  for (const protocol::record_notice& n : around_->plan.records) {
    announce({n.record, n.world, n.plan, {}, {}});
  }
  if (newest.validate) validating_ = done_;
}

void coordinator_state::take(const incoming& m) {
  if (phase_ == phase::asleep) return;
  if (const auto* v = std::get_if<protocol::vote>(&m.what)) return collect(m.from, *v);
  if (const auto* r = std::get_if<protocol::recorded>(&m.what)) return recorded(m.from, r->step);
  if (const auto* r = std::get_if<protocol::ready>(&m.what)) return is_ready(m.from, *r);
  if (std::holds_alternative<protocol::copies_held>(m.what)) return copied(m.from);
  if (const auto* b = std::get_if<protocol::bulk_address>(&m.what)) {
    return has_address(m.from, b->where);
  }
  if (const auto* s = std::get_if<protocol::validation_share>(&m.what)) return collect(*s);
  if (const auto* s = std::get_if<protocol::save_share>(&m.what)) return collect(m.from, *s);
  if (const auto* s = std::get_if<protocol::stop_wish>(&m.what)) return stop(s->why);
  if (const auto* h = std::get_if<protocol::heartbeat>(&m.what)) records().heard_of(m.from, *h);
}

void coordinator_state::has_address(member_id who, const std::vector<std::byte>& where) {
  addresses_[who] = where;
  if (addresses_.size() < around_->plan.members.size()) return;
  protocol::address_table table;
  for (const auto& [id, at] : addresses_) table.addresses.push_back({id, at});
  around_->mail.broadcast(table);
}

void coordinator_state::is_ready(member_id who, const protocol::ready& how) {
  if (phase_ != phase::gathering) return;
  ready_.insert(who);
  mark("ready", who);
  if (how.without_parameters) without_parameters_.insert(who);
  if (ready_.size() < around_->plan.members.size()) return;
  const bool to_end = done_ >= settings().steps || !stop_why_.empty();
  if (waits_for_.empty() || to_end) return begin_steps();
  wait_for_members();
}

// Whoever lacks parameters gets them, as copies and newcomers need them; the step is given up
// before it is begun.
void coordinator_state::wait_for_members() {
  phase_ = phase::waiting;
  records().waits_for_members(waits_for_);
  say_go();
  say_no_more_steps();
  if (!copies_.empty()) around_->mail.broadcast(protocol::copy_plan{copies_});
  if (change_wanted_) want_change();
}

void coordinator_state::say_go() {
  around_->mail.broadcast(
      protocol::go{{without_parameters_.begin(), without_parameters_.end()}, validating_ != 0});
}

void coordinator_state::say_no_more_steps() {
  notice_.record.step = done_;
  notice_.last = true;
  around_->mail.broadcast(notice_);
}

void coordinator_state::begin_steps() {
  phase_ = phase::stepping;
  mark("go", around_->self);
  say_go();
  if (done_ >= settings().steps) return give_up_step(done_ + 1);
  if (!stop_why_.empty()) return give_up_step(done_ + 1);
  if (!copies_.empty()) around_->mail.broadcast(protocol::copy_plan{copies_});
}

void coordinator_state::mark(const char* what, member_id who) {
  if (around_->plan.verdict == "start") return;
  records().marked({what, around_->plan.find(who)->name, around_->clock.now()});
}

// Without steps, the plan may end wherever it is: linking it has made its base stable.
void coordinator_state::want_change() {
  change_wanted_ = true;
  if (phase_ != phase::waiting) return;
  phase_ = phase::changing;
  caf::anon_send(around_->mail.worker, boundary_reached{around_->plan.number});
}

// Nothing while others are made: the plan that follows on those begins with what is still to do.
void coordinator_state::copy(const std::vector<protocol::copy_plan::copy>& copies) {
  if (phase_ > phase::stepping || !copying_.empty()) return;
  for (const protocol::copy_plan::copy& c : copies) copying_.insert(c.to);
  copies_ = copies;
  if (phase_ < phase::waiting) return;  // told with the sign to begin
  around_->mail.broadcast(protocol::copy_plan{copies});
}

void coordinator_state::copied(member_id who) {
  copying_.erase(who);
  if (copying_.empty()) want_change();
}

void coordinator_state::collect(member_id from, const protocol::vote& v) {
  if (phase_ != phase::stepping || v.step != done_ + 1) return;  // of a step that was given up
  recorded(from, v.step - 1);
  result<std::optional<protocol::step_votes>> sums = steps_->add(from, v);
  if (!sums) return around_->fail(sums.failure());
  facts_[from] = v.facts;
  if (!sums->has_value()) return;
  around_->reached(protocol_point::votes_complete, v.step);
  decide(**sums);
}

void coordinator_state::decide(const protocol::step_votes& sums) {
  const std::uint64_t step = done_ + 1;
  last_ = protocol::decide(step, updates_, sums,
                           {.max_norm = settings().max_norm,
                            .skip_nonfinite = settings().skip_nonfinite,
                            .lr = settings().rate(step)});
  steps_->decided();
  done_ = step;
  updates_ = last_.updates;
  tokens_ += static_cast<std::uint64_t>(last_.tokens);
  // With others, a notice to this process is a wish of one member, which its worker has heard of.
  const bool alone = around_->plan.members.size() == 1;
  if (alone && stop_why_.empty() && settings().asked_to_stop) {
    stop_why_ = settings().asked_to_stop(step);
    if (!stop_why_.empty()) records().asked_to_stop(step, stop_why_);
  }
  const bool ends = step >= settings().steps || !stop_why_.empty();
  const bool last = ends || change_wanted_;
  skipped_in_a_row_ = last_.skip ? skipped_in_a_row_ + 1 : 0;
  const std::uint64_t freq = settings().validation_freq;
  std::uint32_t computing = 0;
  for (const protocol::plan_member& m : around_->plan.members) computing += m.leaves > 0 ? 1 : 0;
  notice_ = {.record = last_,
             .last = last,
             .validate = freq > 0 && (step % freq == 0 || step >= settings().steps),
             .lines = lines_,
             .total_tokens = tokens_,
             .skipped_in_a_row = skipped_in_a_row_,
             .plan = around_->plan.number,
             .world = computing};
  if (notice_.validate) {
    validating_ = step;
    validation_.clear();
  }
  unstable_[step] = {last_, computing, around_->plan.number, facts_, {}};
  if (last) phase_ = ends ? phase::ending : phase::changing;
  around_->reached(protocol_point::decided, step);
  around_->mail.broadcast(notice_, sent_mark{protocol_point::commit_sent, step});
  count_skips(last_);
}

void coordinator_state::count_skips(const decision_record& record) {
  if (skipped_in_a_row_ <= settings().max_skipped_steps) return;
  around_->fail(
      {exit_code::bad_data,
       std::to_string(skipped_in_a_row_) + " steps in a row were skipped, the last one is step " +
           std::to_string(record.step) + " (" + record.why_skipped +
           "); training.max_skipped_steps is " + std::to_string(settings().max_skipped_steps) +
           ". The last checkpoint stays as it is; try a lower optimizer.lr, a longer warm-up, or "
           "look at the data of these steps"});
}

void coordinator_state::recorded(member_id by, std::uint64_t step) {
  const std::optional<std::uint64_t> stable = steps_->recorded(by, step);
  if (!stable) return;
  announce_stable(*stable);
  if (phase_ == phase::changing && *stable >= done_) {
    caf::anon_send(around_->mail.worker, boundary_reached{around_->plan.number});
  }
}

// In order: a step is stable before the next one is decided, or at the latest with it.
void coordinator_state::announce_stable(std::uint64_t upto) {
  while (!unstable_.empty() && unstable_.begin()->first <= upto) {
    const committed_step committed = std::move(unstable_.begin()->second);
    unstable_.erase(unstable_.begin());
    around_->points.committed(around_->self, committed.record.step);
    around_->reached(protocol_point::stable, committed.record.step);
    announce(committed);
  }
}

void coordinator_state::announce(const committed_step& step) {
  committed_step told = step;
  told.at = around_->clock.now();
  records().committed(told, [me = self_, at = step.record.step](status s) {
    if (!s) return caf::anon_send(me, trouble{s.failure()});
    caf::anon_send(me, line_written{at});
  });
}

void coordinator_state::written(std::uint64_t step) {
  lines_ = std::max(lines_, step);
  end_if_complete();
}

void coordinator_state::collect(const protocol::validation_share& share) {
  if (share.step != validating_) return;
  for (const protocol::leaf_loss& l : share.losses) validation_[l.leaf] = l;
  if (validation_.size() < around_->plan.virtual_ranks) return;
  std::vector<double> sums, tokens;
  for (const auto& [leaf, loss] : validation_) {
    sums.push_back(loss.loss_sum);
    tokens.push_back(loss.tokens);
  }
  const double counted = tree_sum(tokens);
  records().validated(share.step, counted > 0 ? tree_sum(sums) / counted : 0.0, counted);
  validating_ = 0;
  end_if_complete();
}

void coordinator_state::stop(const std::string& why) {
  if (!stop_why_.empty() || phase_ > phase::stepping) return;  // the same notice, or ending anyway
  stop_why_ = why;
  records().asked_to_stop(done_, why);
  if (phase_ == phase::waiting) {  // nothing is under way
    phase_ = phase::ending;
    return end_if_complete();
  }
  if (phase_ == phase::stepping) {
    actor_->delayed_send(self_, settings().patience, patience_over{done_ + 1});
  }
}

void coordinator_state::give_up_step(std::uint64_t step) {
  if (phase_ != phase::stepping || done_ + 1 != step) return;  // it was decided in time
  phase_ = phase::ending;
  say_no_more_steps();
  end_if_complete();
}

void coordinator_state::end_if_complete() {
  if (phase_ != phase::ending || lines_ < done_ || validating_ != 0) return;
  phase_ = phase::saving;
  records().save_begins(done_);
  if (!settings().keep) return write_into("");
  surroundings_->store.begin_save(
      done_, tell<std::string>([](std::string folder) { return folder_ready{std::move(folder)}; }));
}

void coordinator_state::write_into(const std::string& folder) {
  folder_ = folder;
  around_->mail.broadcast(protocol::save_request{done_, folder});
}

void coordinator_state::collect(member_id from, const protocol::save_share& share) {
  if (phase_ != phase::saving || share.step != done_) return;
  if (share.failure != 0) {
    return fail({static_cast<exit_code>(share.failure), share.message});
  }
  shares_[from] = share;
  if (shares_.size() < around_->plan.members.size()) return;
  save_facts facts{
      .step = done_, .updates = updates_, .tokens = tokens_, .record = last_, .blocks = {}};
  for (const auto& [id, s] : shares_) {
    if (not_finite_in_.empty()) not_finite_in_ = s.not_finite_in;
    facts.blocks.insert(facts.blocks.end(), s.blocks.begin(), s.blocks.end());
  }
  if (!not_finite_in_.empty()) records().not_finite(done_, not_finite_in_);
  std::ranges::sort(facts.blocks, {}, &protocol::saved_block::block);
  surroundings_->store.finish_save(
      folder_, facts, tell<saved_hashes>([](const saved_hashes& h) { return save_finished{h}; }));
}

void coordinator_state::saved(const saved_hashes& hashes) {
  phase_ = phase::closing;
  records().saved(done_, hashes);
  const exit_code code = done_ >= settings().steps ? exit_code::ok : exit_code::interrupted;
  records().finished(done_, code, stop_why_, [me = self_](status s) {
    if (!s) return caf::anon_send(me, trouble{s.failure()});
    caf::anon_send(me, records_complete{});
  });
}

void coordinator_state::close() {
  const exit_code code = done_ >= settings().steps ? exit_code::ok : exit_code::interrupted;
  // The worker passes it on to the others.
  around_->mail.send(around_->self, protocol::farewell{static_cast<int>(code), stop_why_});
}

caf::behavior coordinator_actor(caf::stateful_actor<coordinator_state>* self, shared_context around,
                                const coordinator_surroundings* surroundings,
                                const coordinator_start& start) {
  guard(self, around);
  self->state.begin(self, around, *surroundings, start);
  return {
      while_current<incoming>(around, [self](const incoming& m) { self->state.take(m); }),
      while_current<line_written>(around,
                                  [self](const line_written& m) { self->state.written(m.step); }),
      while_current<folder_ready>(
          around, [self](const folder_ready& m) { self->state.write_into(m.folder); }),
      while_current<save_finished>(around,
                                   [self](const save_finished& m) { self->state.saved(m.hashes); }),
      while_current<records_complete>(around,
                                      [self](const records_complete&) { self->state.close(); }),
      while_current<patience_over>(
          around, [self](const patience_over& m) { self->state.give_up_step(m.step); }),
      while_current<change_wanted>(around,
                                   [self](const change_wanted&) { self->state.want_change(); }),
      while_current<copies_wanted>(around,
                                   [self](const copies_wanted& m) { self->state.copy(m.copies); }),
      while_current<trouble>(around, [self](const trouble& m) { self->state.fail(m.why); }),
  };
}

}  // namespace

caf::actor spawn_coordinator(caf::event_based_actor* parent, shared_context around,
                             const coordinator_surroundings& surroundings,
                             const coordinator_start& start) {
  return parent->spawn<caf::linked>(coordinator_actor, std::move(around), &surroundings, start);
}

}  // namespace troupe::actors
