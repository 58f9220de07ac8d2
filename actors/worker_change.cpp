#include <fmt/format.h>

#include <algorithm>

#include "actors/plan_text.hpp"
#include "actors/protocol/plan_change.hpp"
#include "actors/protocol/succession.hpp"
#include "actors/worker_state.hpp"

namespace troupe::actors {

// --- promising ---

// From here on nothing of the present plan has an effect: this is made before the number is told to
// anybody, in the same handler.
void worker_state::promise_next(generation next) {
  promised_ = std::max(promised_, next);
  end_generation();
}

void worker_state::end_generation() {
  if (!context_ || context_->over) return;
  context_->over = true;
  mail_->act_for(std::nullopt);
  around_->work.cancel();
  bulk_->close();
  for (caf::actor* actor : {&rank_, &coordinator_}) {
    if (*actor) caf::anon_send_exit(*actor, caf::exit_reason::user_shutdown);
    *actor = {};
  }
  mail_->rank = mail_->coordinator = {};
  mail_->primary_shards.clear();
  mail_->backup_shards.clear();
  around_->points.promised(self(), promised_);
  reached(protocol_point::promised);
}

protocol::promise worker_state::my_promise() const {
  protocol::promise mine;
  mine.next = promised_;
  mine.of_plan = context_ && context_->plan.number.value + 1 == promised_.value;
  if (!context_) return mine;
  mine.seen = lasting_.seen;
  mine.records = lasting_.records;
  mine.blocks = lasting_.held.facts();
  return mine;
}

void worker_state::take(member_id from, const protocol::collect& m) {
  if (!context_) {  // it comes anew
    promised_ = std::max(promised_, m.next);
    reached(protocol_point::promised);
    return mail_->send(from, my_promise());
  }
  const generation number = context_->plan.number;
  if (m.next <= number) {  // it does not know this plan yet
    return mail_->send(from, protocol::plan_notice{print_plan(context_->plan)});
  }
  // A plan that was missed comes before the question, and the question comes again.
  if (m.present != number) return;
  if (m.next < promised_) return mail_->send(from, protocol::promise_refused{m.next, promised_});
  if (noticed_ == time_since_start{}) noticed_ = now();
  promise_next(m.next);
  owed_.insert(from);
  collector_ = from;
  answer_promises();
  collect_after_others(settings().evict, "the plan that was promised did not come");
}

void worker_state::answer_promises() {
  if (!context_ || !context_->over || !lasting_.still()) return;
  const protocol::promise mine = my_promise();
  for (const member_id to : std::exchange(owed_, {})) mail_->send(to, mine);
  if (collecting_ && !collecting_->has_answered(self())) {
    mark("promised", self());
    collecting_->answered(self(), mine);
    publish_if_complete();
  }
}

// The last update or save that ran has ended.
void worker_state::still() {
  if (phase_ >= phase::ending || !lasting_.still()) return;
  if (next_) {
    protocol::plan plan = std::move(*next_);
    next_.reset();
    return adopt(std::move(plan));
  }
  answer_promises();
}

// --- collecting ---

void worker_state::want_change() {
  if (coordinates() && coordinator_) caf::anon_send(coordinator_, change_wanted{});
}

void worker_state::boundary(generation of) {
  if (!coordinates() || context_->plan.number != of || context_->over) return;
  at_boundary_ = true;
  if (noticed_ == time_since_start{}) noticed_ = now();
  collect_now("");
}

// Nothing of a plan is sent twice, so the next plan begins the step again; whoever misses something
// knows it alone, and collects itself. Nobody is to blame for a bit on the way.
void worker_state::damaged(const transfer_damaged& m) {
  if (!context_ || context_->over || context_->plan.number != m.of) return;
  if (noticed_ == time_since_start{}) noticed_ = now();
  collect_now(fmt::format("{} misses something: {}", name_of(self()), m.why));
}

// A while after it could be another member's turn, unless there is a plan by then.
void worker_state::collect_after_others(std::chrono::nanoseconds pause, const std::string& why) {
  if (!context_) return;
  std::set<member_id> away;
  for (const auto& [id, how] : gone_) away.insert(id);
  for (const auto& [id, how] : suspects_) away.insert(id);
  const auto turn = protocol::turn_to_collect(context_->plan, self(), away, settings().suspect);
  if (!turn) return;
  actor_->delayed_send(self_, pause + *turn,
                       collect_turn{generation(context_->plan.number.value + 1), why});
}

void worker_state::collect_now(const std::string& why) {
  if (phase_ >= phase::ending || !context_ || collecting_ || next_) return;
  collecting_.emplace(context_->plan);
  chain_asked_ = chain_known_ = false;
  mark("collecting", self());
  collector_ = self();
  collect_why_ = why;
  for (const auto& [id, how] : std::exchange(suspects_, {})) {
    const protocol::plan_member* m = context_->plan.find(id);
    if (m != nullptr && m->life == how.life && !is_heard(id)) give_up(*m, how);
  }
  for (const auto& [id, how] : gone_) collecting_->gone(id, how.proven);
  for (const auto& [id, who] : newcomers_) collecting_->newcomer(candidate_from(who));
  const generation next = collecting_->next();
  promise_next(next);
  ask_for_promises();
  actor_->delayed_send(self_, settings().evict, promises_overdue{next});
  actor_->delayed_send(self_, settings().suspect, ask_promises_again{next});
  answer_promises();
}

void worker_state::ask_for_promises(bool again) {
  const protocol::collect question{context_->plan.number, collecting_->next(), collect_why_};
  // Whoever missed the present plan has to adopt it first.
  const protocol::plan_notice present{print_plan(context_->plan)};
  std::vector<member_id> to_ask = collecting_->waiting_for();
  // Whoever was only out of reach may be the one that has what is missing.
  for (const auto& [id, how] : gone_) {
    if (!how.proven) to_ask.push_back(id);
  }
  for (const member_id id : to_ask) {
    if (id == self()) continue;
    if (const protocol::plan_member* m = context_->plan.find(id)) {
      if (!newcomers_.contains(id)) (void)peer_of(id, m->life);
      if (!links_.contains(id)) links_to(id);
    }
    // What waits for one that does not listen need not wait for it twice.
    if (again && !is_heard(id)) continue;
    mail_->send(id, present);
    mail_->send(id, question, sent_mark{protocol_point::collect_sent, doing()});
  }
}

// A collector never gives up.
void worker_state::repeat_question(generation next) {
  if (!collecting_ || collecting_->next() != next || phase_ >= phase::ending) return;
  if (!publishing_next_) {
    chain_asked_ = chain_known_ = false;
    ask_for_promises(true);
    publish_if_complete();
  }
  actor_->delayed_send(self_, settings().suspect, ask_promises_again{next});
}

void worker_state::stop_waiting(generation next) {
  if (!collecting_ || collecting_->next() != next) return;
  // A newcomer that does not answer is turned away, or the next step would end in a change for its
  // sake again, and so would every one after it. If it lives, it comes again.
  for (const member_id id : collecting_->waiting_for()) {
    if (newcomers_.erase(id) == 0) continue;
    collecting_->gone(id, false);
    drop_peer(id);
  }
  collecting_->too_slow();
  publish_if_complete();
}

void worker_state::take(member_id from, const protocol::promise& m) {
  if (!collecting_) return;
  if (const auto away = gone_.find(from); away != gone_.end() && !away->second.proven) {
    gone_.erase(away);
  }
  mark("promised", from);
  collecting_->answered(from, m);
  publish_if_complete();
}

protocol::next_plan_settings worker_state::next_settings() const {
  protocol::next_plan_settings next;
  next.layers = around_->work.shape().elements_of_blocks();
  next.backups = settings().backups;
  next.spares = settings().spares;
  next.coordinator = self();
  for (const auto& [id, wish] : leaving_) next.leaving.insert(id);
  return next;
}

// What is still to be copied until every block is held as it should be.
std::vector<protocol::copy_plan::copy> worker_state::copies_to_make() const {
  const protocol::plan aim = protocol::aim_of(context_->plan, next_settings());
  std::vector<protocol::copy_plan::copy> copies;
  for (const protocol::block_copy& c : protocol::copies_to(aim, context_->plan)) {
    copies.push_back({c.block, c.to});
  }
  return copies;
}

std::string worker_state::reason_of_change() const {
  std::string lost, came, goes, reason;
  const auto add = [](std::string& to, const char* between, const std::string& more) {
    to += (to.empty() ? "" : between) + more;
  };
  for (const auto& [id, how] : gone_) add(lost, "; ", name_of(id) + ": " + how.how);
  for (const auto& [id, who] : newcomers_) add(came, ", ", who.slot);
  for (const auto& [id, wish] : leaving_) add(goes, ", ", name_of(id) + " (" + wish.why + ")");
  if (!lost.empty()) add(reason, "; ", "lost " + lost);
  if (!came.empty()) add(reason, "; ", "joined by " + came);
  if (!goes.empty()) add(reason, "; ", "told to leave: " + goes);
  if (!reason.empty()) return reason;
  return collect_why_.empty() ? "copies are there" : collect_why_;
}

void worker_state::publish_if_complete() {
  if (!collecting_ || publishing_next_ || phase_ >= phase::ending) return;
  if (!collecting_->waiting_for().empty() || !collecting_->has_answered(self())) return;
  unblocked_ = now();
  reached(protocol_point::collected);
  std::vector<protocol::candidate> newcomers;
  for (const auto& [id, who] : newcomers_) newcomers.push_back(candidate_from(who));
  protocol::next_plan_settings wanted = next_settings();
  wanted.parent = plan_hash(print_plan(context_->plan));
  wanted.reason = reason_of_change();
  auto made = protocol::next_plan(*collecting_, context_->plan, newcomers, wanted);
  if (const auto* missing = std::get_if<std::vector<block_id>>(&made)) return uncovered(*missing);
  const protocol::plan& next = std::get<protocol::plan>(made);
  coming_ = change_to(next);
  coming_plan_ = next.number;
  publishing_next_ = true;
  around_->coordination.store.publish_next(next, [me = self_](const result<protocol::plan>& r) {
    if (!r) return caf::anon_send(me, publish_failed{r.failure()});
    caf::anon_send(me, next_published{*r});
  });
  reached(protocol_point::plan_written);
}

world_change worker_state::change_to(const protocol::plan& next) const {
  world_change change;
  const protocol::plan& present = context_->plan;
  for (const protocol::plan_member& m : present.members) {
    const protocol::plan_member* after = next.find(m.id);
    if (after != nullptr && after->life == m.life) continue;
    const auto known = gone_.find(m.id);
    if (leaving_.contains(m.id) && known == gone_.end()) {
      change.left.push_back(m.name);
      continue;
    }
    if (known == gone_.end()) {
      change.lost.push_back({m.name, "it did not answer in time (fault_tolerance.evict_ms)", now(),
                             around_->gate.last_heard(m.id).value_or(time_since_start())});
    } else {
      const loss& how = known->second;
      change.lost.push_back({m.name, how.how, how.noticed, how.heard});
    }
  }
  for (const protocol::plan_member& m : next.members) {
    const protocol::plan_member* before = present.find(m.id);
    if (before == nullptr || before->life != m.life) change.joined.push_back(m.name);
  }
  change.step_redone = !at_boundary_ && !enough_->waits();
  change.noticed = noticed_;
  change.unblocked = unblocked_;
  return change;
}

// Nothing is published. Who has the blocks may only be cut off or frozen.
void worker_state::uncovered(const std::vector<block_id>& blocks) {
  // Or there is a plan already in which others have them, too, and whoever published it was lost
  // before anybody heard of it.
  if (!chain_known_) {
    if (std::exchange(chain_asked_, true)) return;
    return around_->coordination.store.newest_plan(
        [me = self_, question = ++chain_questions_](const result<protocol::plan>& r) {
          if (!r) return caf::anon_send(me, publish_failed{r.failure()});
          caf::anon_send(me, newest_plan_read{question, *r});
        });
  }
  const std::vector<block_id> lost = collecting_->lost();
  const auto text_of = [](block_id b) {
    return fmt::format("block {} of layer {}", b.block, b.layer);
  };
  if (!lost.empty()) {
    return fail(
        {exit_code::too_few,
         fmt::format("{} block{} of the model had no holder left that lives, the first is "
                     "{}; the run can only go on from its newest checkpoint: start it again",
                     lost.size(), lost.size() == 1 ? "" : "s", text_of(lost.front()))});
  }
  if (missing_blocks_.empty()) uncovered_since_ = now();
  if (now() - uncovered_since_ > settings().wait_for_members) {
    return fail(
        {exit_code::too_few,
         fmt::format("{} blocks of the model are held by members that have not answered for "
                     "{} s (elastic.wait_timeout_seconds), the first is {}",
                     blocks.size(), settings().wait_for_members / std::chrono::seconds(1),
                     text_of(blocks.front()))});
  }
  if (!leaving_.empty() && run_is_to_stop()) {
    missing_blocks_ = blocks;
    return stop_the_run();
  }
  if (missing_blocks_ == blocks) return;
  missing_blocks_ = blocks;
  around_->coordination.records.change_waits(
      fmt::format("{} blocks are held by members that do not answer, the first is {}",
                  blocks.size(), text_of(blocks.front())));
}

void worker_state::published(const protocol::plan& plan) {
  if (phase_ >= phase::ending) return;
  publishing_next_ = true;
  mark("published", self());
  // A newcomer whose link broke meanwhile hears of it, too, once it is there again.
  for (const protocol::plan_member& m : plan.members) {
    if (m.id != self()) (void)peer_of(m.id, m.life);
  }
  reached(protocol_point::published);
  const protocol::plan_notice notice{print_plan(plan)};
  const sent_mark mark{protocol_point::verdict_sent, doing()};
  for (const auto& [id, peer] : mail_->peers()) mail_->send(id, notice, mark);
  // The peers say it before this member opens its lane, so that all open theirs at once.
  caf::anon_send(self_, adopt_own{plan});
}

void worker_state::adopt_published(const protocol::plan& plan) {
  publishing_next_ = false;
  adopt(plan);
}

void worker_state::chain_read(std::uint64_t question, const protocol::plan& newest) {
  if (phase_ >= phase::ending || !chain_asked_ || question != chain_questions_) return;
  if (newest.number > context_->plan.number) return published(newest);
  chain_known_ = true;
  publish_if_complete();
}

// The run directory is needed for a change alone; asked again until it answers.
void worker_state::not_published(const error& why) {
  publishing_next_ = chain_asked_ = false;
  if (phase_ >= phase::ending) return;
  around_->coordination.records.change_waits("it could not be published yet: " + why.message);
}

// --- who is told to leave ---

// One that is told to leave hands over what it holds and goes. If all are told, as when the
// launcher was or a batch system ends the job, nobody is left to take it: then the run stops. So
// whoever comes first waits a moment for the others.
void worker_state::wants_to_leave(member_id who, const protocol::stop_wish& wish) {
  if (!coordinates()) return mail_->to_coordinator(wish);
  if (context_->plan.find(who) == nullptr) return;
  leaving_[who] = wish;
  whole_run_stops_ |= wish.whole_run;
  if (run_is_to_stop()) return stop_the_run();
  if (leave_window_open_) return;
  leave_window_open_ = true;
  actor_->delayed_send(self_, std::chrono::milliseconds(300), leave_window_over{});
}

bool worker_state::all_want_to_leave() const {
  return std::ranges::all_of(context_->plan.members, [this](const protocol::plan_member& m) {
    return leaving_.contains(m.id) || is_gone(m);
  });
}

// Members that were only drained stay until somebody else is there to go on.
bool worker_state::run_is_to_stop() const {
  const bool noticed =
      std::ranges::any_of(leaving_, [](const auto& l) { return !l.second.drained; });
  return whole_run_stops_ || (noticed && all_want_to_leave());
}

void worker_state::stop_the_run() {
  const std::string why = leaving_.begin()->second.why;
  const protocol::stop_wish wish{why, true};
  if (coordinator_) return caf::anon_send(coordinator_, incoming{self(), wish});
  // Between two plans. If the next one cannot be made, nothing can be agreed on any more.
  if (!missing_blocks_.empty()) end_with({exit_code::interrupted, why, false});
}

void worker_state::let_them_leave() {
  leave_window_open_ = false;
  if (phase_ >= phase::ending || !coordinates() || context_->over || leaving_.empty()) return;
  if (run_is_to_stop()) return stop_the_run();
  if (all_want_to_leave()) return;
  const copies_wanted wanted{copies_to_make()};
  if (wanted.copies.empty()) return want_change();
  if (coordinator_) caf::anon_send(coordinator_, wanted);
}

// The plan in force may be another one by now, or one that another member coordinates.
void worker_state::give_up_if_too_few() {
  if (phase_ >= phase::ending || !enough_->waits() || !coordinates()) return;
  if (const auto left = enough_->left(now()); left.count() > 0) {
    actor_->delayed_send(self_, left, still_too_few{});
    return;
  }
  fail({exit_code::too_few, enough_->words_of_giving_up()});
}

// The plan goes on without this member. It stays until whoever has to know has heard of the plan.
void worker_state::leave() {
  reached(protocol_point::drained);
  promise_next(generation(context_->plan.number.value + 1));
  phase_ = phase::ending;
  how_ = {drained_ ? exit_code::ok : exit_code::interrupted, stop_why_, false};
  first_to_know_ = true;
  end_when_said([this](member_id id) { return links_.contains(id); }, settings().evict);
}

}  // namespace troupe::actors
