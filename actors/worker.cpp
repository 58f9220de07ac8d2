#include "actors/worker.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/block_update.hpp"
#include "actors/first_plan.hpp"
#include "actors/plan_text.hpp"
#include "actors/protocol/neighbours.hpp"
#include "actors/protocol/plan_change.hpp"
#include "actors/rank.hpp"
#include "actors/worker_state.hpp"

namespace troupe::actors {
void worker_state::begin(caf::event_based_actor* self, const worker_surroundings& around) {
  actor_ = self;
  self_ = caf::actor_cast<caf::actor>(self);
  around_ = &around;
  others_.emplace(settings().me, settings().expected);
  enough_.emplace(settings().min_members, settings().wait_for_members);
  mail_ = std::make_shared<router>(this->self());
  mail_->worker = self_;
  mail_->points = &around.points;
  redial_.emplace(this->self(), redial::limits());
  mail_->set_coordinator(settings().convener);
  lasting_.when_still = [me = self_] { caf::anon_send(me, still_now{}); };
  peer_around_ = std::make_shared<peer_surroundings>(
      peer_surroundings{around.transport.control(), *mail_, around.clock, generation()});
  around.kept.insert(around.kept.end(), {mail_, peer_around_, lasting_owner_});
  // All actors of the process are linked below this one: whichever ends by an exception ends here.
  self->set_exit_handler([this](const caf::exit_msg& m) {
    if (!m.reason || phase_ >= phase::ending) return;
    if (m.reason == caf::exit_reason::user_shutdown) return;  // this member has no use for it
    fail({exit_code::defect,
          fmt::format("an actor of this process ended: {}", caf::to_string(m.reason))});
  });
  run_store& store = around.coordination.store;
  if (settings().convenes) {
    store.choose_start(
        tell<starting_point>([](const starting_point& from) { return start_known{from}; }));
    if (settings().expected > 1) {  // before anybody hears of this member
      store.ask_probe(settings().me.life.value, [me = self_](result<done> r) {
        if (!r) caf::anon_send(me, failed{r.failure()});
      });
    }
    store.announce(around.transport.control().local_address(), generation(),
                   [me = self_](result<done> r) {
                     if (!r) caf::anon_send(me, failed{r.failure()});
                   });
  } else {
    give_up_convener_ = now() + settings().wait_for_convener;
    look();
  }
  self->delayed_send(self_, settings().wait_for_members, waited_long_enough{});
  self->delayed_send(self_, settings().heartbeat, pulse{now() + settings().heartbeat});
}

// --- meeting ---

void worker_state::look() {
  if (phase_ != phase::meeting) return;
  around_->coordination.store.find_convener(
      tell<comm::address>([](comm::address where) { return convener_found{std::move(where)}; }));
}

void worker_state::give_up_waiting() {
  if (phase_ != phase::meeting || context_ || publishing_) return;
  if (settings().convenes) {
    for (const member_id gone : absent_) others_->erase(gone);
    return fail(others_->too_few(settings().wait_for_members));
  }
  if (!links_.empty()) return;  // whom it waits for says when it is enough
  fail({exit_code::too_few,
        fmt::format("member {}, which the others meet at, was not found within {} s "
                    "(elastic.wait_timeout_seconds); is it running, and does it see the same run "
                    "directory?",
                    settings().convener.value,
                    settings().wait_for_members / std::chrono::seconds(1))});
}

void worker_state::convene_if_complete() {
  if (!settings().convenes || !start_ || publishing_ || phase_ != phase::meeting) return;
  if (others_->here() - absent_.size() < settings().expected) return;
  publishing_ = true;
  if (!stop_why_.empty() && !drained_) {
    return end_with({exit_code::interrupted, stop_why_, false});
  }
  if (start_->finished) return end_with({exit_code::ok, "the run is finished", false});
  if (settings().expected == 1) return publish_plan();
  around_->coordination.store.judge_probe(settings().me.life.value, members_to_probe(),
                                          tell<done>([](done) { return directory_fit{}; }));
}

std::vector<probed_member> worker_state::members_to_probe() const {
  std::vector<probed_member> members{probed(settings().me)};
  for (const comm::facts& one : others_->others()) members.push_back(probed(one));
  return members;
}

void worker_state::publish_plan() {
  if (phase_ != phase::meeting) return;
  const protocol::plan wanted =
      protocol::make_plan(first_plan(settings(), *others_, around_->work.shape(), start_->step));
  around_->coordination.store.publish_plan(
      wanted, tell<protocol::plan>([](protocol::plan p) { return plan_published{std::move(p)}; }));
}

void worker_state::first_published(const protocol::plan& plan) {
  if (phase_ != phase::meeting) return;
  const protocol::plan_notice notice{print_plan(plan)};
  for (const auto& [id, peer] : mail_->peers()) mail_->send(id, notice);
  adopt(plan);
}

// --- adopting ---

void worker_state::adopt(protocol::plan plan) {
  if (phase_ >= phase::ending) return;
  if (context_ && plan.number <= context_->plan.number) return;  // known
  const protocol::plan_member* me = plan.find(self());
  if (me == nullptr && !stop_why_.empty() && context_) return leave();
  if (me == nullptr || me->life != settings().me.life) {
    if (!context_) {  // of a world that has not taken it in yet
      if (settings().joins && plan.find(self()) == nullptr) shown(plan);
      return;
    }
    const std::string who =
        me == nullptr ? "does not name this member" : "names another process in this member's slot";
    return end_unlisted(
        {exit_code::too_few,
         fmt::format("plan {} {}: {}; a new process may join the run", plan.number.value, who,
                     plan.reason.empty() ? "no reason given" : plan.reason)});
  }
  promise_next(plan.number);
  if (!lasting_.still()) {
    if (!next_ || next_->number < plan.number) next_ = std::move(plan);
    return;  // an update or a save still runs
  }
  note_former(plan);
  const bool announces = plan.coordinator == self() && plan.verdict != "start";
  phase_ = phase::adopting;
  watching_since_ = now();
  mail_->set_coordinator(plan.coordinator);
  if (status opened = open_generation(std::move(plan)); !opened) return fail(opened.failure());
  const protocol::plan& adopted = context_->plan;
  take_over_newcomers();
  tidy_links(adopted);
  begin_generation();
  if (announces) {
    around_->coordination.store.announce(around_->transport.control().local_address(),
                                         adopted.number, [me = self_](result<done> r) {
                                           if (!r) caf::anon_send(me, publish_failed{r.failure()});
                                         });
  }
}

status worker_state::open_generation(protocol::plan plan) {
  const protocol::plan_member& me = *plan.find(self());
  const member_share share{plan.virtual_ranks, me.first_leaf, me.leaves,
                           protocol::blocks_primary(plan, self()),
                           protocol::blocks_backed_up(plan, self())};
  const auto bulk = std::make_shared<exchange>(around_->work, *mail_, share, lasting_);
  if (status opened = bulk->open(around_->transport, plan.number); !opened) return opened;
  bulk_ = bulk;
  peer_around_->plan = plan.number;
  context_ = std::make_shared<generation_context>(generation_context{
      std::move(plan), self(), around_->work, *bulk, *mail_, around_->points, lasting_,
      [me = self_](const error& why) { caf::anon_send(me, failed{why}); }, around_->clock,
      around_->transport, settings().peak_memory, bulk});
  unlinked_.clear();
  bulk_connected_ = state_here_ = ready_said_ = false;
  gone_.clear();
  suspects_.clear();
  enough_->in_force(context_->plan, now());
  mark("adopted", self());
  accused_.clear();
  complaints_.clear();
  std::erase_if(leaving_,
                [this](const auto& l) { return context_->plan.find(l.first) == nullptr; });
  owed_.clear();
  collecting_.reset();
  missing_blocks_.clear();
  at_boundary_ = false;
  noticed_ = {};
  if (enough_->waits() && coordinates()) {
    actor_->delayed_send(self_, enough_->left(now()), still_too_few{});
  }
  take_state(share);
  return done{};
}

// What this member holds in the plan, at the plan's base: from the seed or a checkpoint where a run
// starts, else it has it already, or has the gradient that leads there.
void worker_state::take_state(const member_share& share) {
  const protocol::plan& plan = context_->plan;
  std::vector<block_id> held = share.primary;
  held.insert(held.end(), share.backup.begin(), share.backup.end());
  std::ranges::sort(held);
  if (plan.verdict == "start") {
    lasting_.parameters = true;
  } else if (lasting_.seen != plan.base || plan.find(self())->leaves == 0) {
    lasting_.parameters = false;
  }
  lasting_.seen = plan.base;
  lasting_.records = plan.records;
  lasting_.held.keep_only(held);
  lasting_.held.drop_sums_after(plan.base);
  around_->work.adopt(share);
  behind_base_ = 0;
  if (plan.verdict == "start") {
    for (const block_id block : held) lasting_.held.have(block, plan.base);
    if (plan.base == 0) {
      around_->work.initialize([me = self_, ctx = context_](computation::trouble trouble) {
        if (trouble) return ctx->fail(error_of(trouble));
        caf::anon_send(me, state_loaded{});
      });
    } else {
      around_->coordination.store.load(plan.base, share, around_->work,
                                       tell<done>([](done) { return state_loaded{}; }));
    }
    return;
  }
  for (const block_id block : held) {
    const std::optional<std::uint64_t> version = lasting_.held.version_of(block);
    if (version == plan.base) continue;
    const bool one_behind = version && *version + 1 == plan.base &&
                            lasting_.held.has_next_sum(block) && !plan.records.empty();
    if (!one_behind) {
      return fail({exit_code::defect,
                   fmt::format("plan {} lists this member as a holder of block {} of layer {} at "
                               "version {}, which it has not",
                               plan.number.value, block.block, block.layer, plan.base)});
    }
    ++behind_base_;
    update_block(context_, block, plan.records.back().record, [me = self_, number = plan.number] {
      caf::anon_send(me, rolled_forward{number});
    });
  }
  if (behind_base_ == 0) state_here_ = true;
}

void worker_state::begin_generation() {
  const protocol::plan& plan = context_->plan;
  // An older process in a slot learns that it has been followed; everybody else may come in.
  gate().admit_by([ctx = context_](const comm::facts& who) -> std::optional<std::string> {
    const protocol::plan_member* m = who.wish ? ctx->plan.find(*who.wish) : nullptr;
    if (m == nullptr || who.life >= m->life) return std::nullopt;
    return fmt::format("its {} is another process now ({} on {})", who.slot, m->address, m->host);
  });
  around_->points.plan_adopted(self(), plan);
  reached(protocol_point::adopted);
  rank_ = spawn_rank(actor_, context_, around_->coordination.store);
  mail_->rank = rank_;
  coordinator_ = spawn_coordinator(actor_, context_, around_->coordination, start_of_coordinator());
  mail_->coordinator = coordinator_;
  marks_.clear();
  mail_->act_for(plan.number);
  link_to_neighbours();
  mail_->to_coordinator(protocol::bulk_address{bulk_->local_address()});
  if (!stop_why_.empty()) {
    mail_->to_coordinator(protocol::stop_wish{stop_why_, whole_run_stops_, drained_});
  }
  if (coordinates() && !newcomers_.empty()) want_change();
  if (coordinates() && !leaving_.empty()) let_them_leave();
  ready_if_complete();
}

coordinator_start worker_state::start_of_coordinator() const {
  const protocol::plan& plan = context_->plan;
  coordinator_start start;
  if (enough_->waits()) start.waits_for = enough_->words();
  start.waited = enough_->waited();
  if (plan.verdict == "start") {
    start.from = start_.value_or(starting_point());
    start.from.step = plan.base;
    return start;
  }
  start.from.step = plan.base;
  if (!plan.records.empty()) {
    start.from.updates = plan.records.back().record.updates;
    start.from.tokens = plan.records.back().total_tokens;
  }
  if (plan.coordinator != self()) return start;
  if (coming_ && coming_plan_ == plan.number) start.how = *coming_;
  start.how.marks = marks_;
  start.copies = copies_to_make();
  return start;
}

void worker_state::connect_bulk(const protocol::address_table& table) {
  for (const protocol::member_address& a : table.addresses) {
    if (a.member == self() || context_->plan.find(a.member) == nullptr) continue;
    if (status connected = bulk_->connect(a.member, a.where); !connected) {
      return fail(connected.failure());
    }
  }
  bulk_connected_ = true;
  ready_if_complete();
}

void worker_state::ready_if_complete() {
  if (phase_ != phase::adopting || ready_said_) return;
  if (!unlinked_.empty() || !bulk_connected_ || !state_here_) return;
  ready_said_ = true;
  phase_ = phase::working;
  mail_->to_coordinator(protocol::ready{context_->me().leaves > 0 && !lasting_.parameters});
}

void worker_state::at_base(generation plan) {
  if (!context_ || context_->plan.number != plan || behind_base_ == 0) return;
  if (--behind_base_ > 0) return;
  state_here_ = true;
  ready_if_complete();
}

void worker_state::take(const incoming& m) {
  if (const auto* bye = std::get_if<protocol::farewell>(&m.what)) {
    if (phase_ == phase::ending) return quiet(m.from);  // who says farewell needs none
    // Only a member of the world ends it.
    if (context_ && context_->plan.find(m.from) == nullptr) return;
    return end_with({static_cast<exit_code>(bye->code), bye->why, false}, m.from == self());
  }
  if (const auto* wish = std::get_if<protocol::stop_wish>(&m.what)) {
    if (context_) return wants_to_leave(m.from, *wish);
    return stop({wish->why, wish->whole_run, false});
  }
  if (phase_ >= phase::ending) return;
  if (const auto* notice = std::get_if<protocol::plan_notice>(&m.what)) {
    result<protocol::plan> plan = parse_plan(notice->text, "the plan that was announced");
    if (!plan) return fail(plan.failure());
    return adopt(std::move(*plan));
  }
  if (const auto* question = std::get_if<protocol::collect>(&m.what))
    return take(m.from, *question);
  if (const auto* answer = std::get_if<protocol::promise>(&m.what)) return take(m.from, *answer);
  if (const auto* gone = std::get_if<protocol::member_gone>(&m.what)) return take(m.from, *gone);
  if (const auto* table = std::get_if<protocol::address_table>(&m.what)) {
    if (context_ && !context_->over) connect_bulk(*table);
  }
}

// --- ending ---

void worker_state::stop(const stop_asked& what) {
  if (phase_ >= phase::ending) return;
  reached(protocol_point::notice_received);
  const std::string& why = what.why;
  stop_why_ = why;
  whole_run_stops_ |= what.whole_run;
  drained_ = what.drained;
  const protocol::stop_wish wish{why, what.whole_run, what.drained};
  if (context_) return mail_->to_coordinator(wish);
  // It leaves by a plan: with links it is in one soon, as nobody takes back that it was let in.
  if (what.drained && !(settings().joins && links_.empty())) return;
  if (what.drained) return end_unlisted({exit_code::ok, why});
  if (settings().convenes) return end_with({exit_code::interrupted, why, false});
  if (settings().joins) return end_unlisted({exit_code::interrupted, why});  // nobody misses it
  if (!links_.empty()) return mail_->to_coordinator(wish);
  end_with({exit_code::interrupted, why, false});
}

// A defect of one member, and any trouble of one that is not in the world yet, is its own: the
// world goes on, and its launcher may start it again. What every other member would meet as well,
// or the coordinator says of the run, ends it.
void worker_state::fail(const error& why) {
  const bool starts = phase_ == phase::adopting && context_->plan.verdict == "start";
  const bool among_others = context_ && context_->plan.members.size() > 1 && !starts;
  const bool its_own = context_ ? among_others && why.code == exit_code::defect : settings().joins;
  if (!its_own) return end_with({why.code, why.message, true});
  if (context_ && !coordinates() && !context_->over) {
    mail_->to_coordinator(
        protocol::member_gone{self(), settings().me.life, true, "it failed: " + why.message});
  }
  end_unlisted(why);
}

void worker_state::end_with(const ending& how, bool first) {
  if (phase_ >= phase::ending) return;
  phase_ = phase::ending;
  how_ = how;
  first_to_know_ = first;
  around_->work.cancel();
  say_farewell();
  // After a failure somebody may never answer; after an ordinary end nobody should miss it.
  const bool ordinary = first && !how.our_own;
  end_when_said(
      [this, first](member_id id) {
        if (id == lost_ || (context_ && is_stranger(id))) return false;
        return links_.contains(id) || (first && redial_->is_missing(id));
      },
      ordinary ? settings().evict : std::chrono::milliseconds(500));
}

// Ends once these have all that was said to them, at the latest after this time.
void worker_state::end_when_said(const std::function<bool(member_id)>& to,
                                 std::chrono::nanoseconds at_most) {
  for (const auto& [id, peer] : mail_->peers()) {
    if (!to(id)) continue;
    talking_.insert(id);
    caf::anon_send(peer, peer_finish{});
  }
  actor_->delayed_send(self_, at_most, end_now{});
  end_if_quiet();
}

// Its own trouble alone, so there is no farewell: the others go on. But what it has just said goes
// out before its links end: whoever waits with it for members on the other side of a cut hears from
// it that there is a plan.
void worker_state::end_unlisted(const error& why) {
  if (phase_ >= phase::ending) return;
  phase_ = phase::ending;
  how_ = {why.code, why.message, true};
  end_generation();
  end_when_said([this](member_id id) { return is_heard(id); }, settings().suspect);
}

// Whoever hears a farewell passes it on, so that a member whose neighbours have ended knows why
// even if the first one's words come late.
void worker_state::say_farewell() {
  const std::string me =
      fmt::format("member {} ({} on {}): ", self().value, settings().me.slot, settings().me.host);
  const protocol::farewell bye{static_cast<int>(how_.code),
                               how_.our_own ? me + how_.why : how_.why};
  for (const auto& [id, peer] : mail_->peers()) mail_->send(id, bye);
}

void worker_state::end_if_quiet() {
  if (phase_ == phase::ending && talking_.empty()) end();
}

void worker_state::end() {
  if (phase_ == phase::ended) return;
  phase_ = phase::ended;
  lasting_.when_still = {};
  gate().close_all();
  if (bulk_) bulk_->close();
  around_->ended(how_);
}

namespace {

caf::behavior worker_actor(caf::stateful_actor<worker_state>* self,
                           const worker_surroundings* around) {
  self->set_exception_handler([self](std::exception_ptr& trouble) -> caf::error {
    self->state.end_at_once(error_of(self->name(), trouble));
    return caf::sec::runtime_error;
  });
  self->state.begin(self, *around);
  return {
      [self](const incoming& m) { self->state.take(m); },
      [self](const to_be_linked& m) { self->state.link_and_send(m.to, m.what); },
      [self](const introduced& m) { self->state.met(m); },
      [self](const not_introduced& m) { self->state.not_met(m); },
      [self](const link_ended& m) { self->state.lost_link(m); },
      [self](const visitor_refused& m) { self->state.turned_away(m.why); },
      [self](const start_known& m) { self->state.start_is(m.from); },
      [self](const convener_found& m) { self->state.found(m.where); },
      [self](const look_for_convener&) { self->state.look(); },
      [self](const directory_fit&) { self->state.publish_plan(); },
      [self](const plan_published& m) { self->state.first_published(m.plan); },
      [self](const still_too_few&) { self->state.give_up_if_too_few(); },
      [self](const still_now&) { self->state.still(); },
      [self](const rolled_forward& m) { self->state.at_base(m.plan); },
      [self](const collect_turn& m) { self->state.collect_in_turn(m.next, m.why); },
      [self](const ask_promises_again& m) { self->state.repeat_question(m.next); },
      [self](const promises_overdue& m) { self->state.stop_waiting(m.next); },
      [self](const next_published& m) { self->state.published(m.plan); },
      [self](const publish_failed& m) { self->state.not_published(m.why); },
      [self](const newest_plan_read& m) { self->state.chain_read(m.question, m.plan); },
      [self](const boundary_reached& m) { self->state.boundary(m.of); },
      [self](const stranger_overdue& m) { self->state.drop_stranger(m.who, m.life); },
      [self](const adopt_own& m) { self->state.adopt_published(m.plan); },
      [self](const let_them_in&) { self->state.let_newcomers_in(); },
      [self](const leave_window_over&) { self->state.let_them_leave(); },
      [self](const state_loaded&) { self->state.loaded(); },
      [self](const peer_quiet& m) { self->state.quiet(m.who); },
      [self](const peer_failed& m) { self->state.fail(m.why); },
      [self](const stop_asked& m) { self->state.stop(m); },
      [self](const pulse& m) { self->state.beat(m.due); },
      [self](const dial_again& m) { self->state.dial(m.who); },
      [self](const end_now&) { self->state.end(); },
      [self](const waited_long_enough&) { self->state.give_up_waiting(); },
      [self](const failed& m) { self->state.fail(m.why); },
      [self](const transfer_damaged& m) { self->state.damaged(m); },
  };
}

}  // namespace

caf::actor spawn_worker(caf::actor_system& system, const worker_surroundings& around) {
  return system.spawn(worker_actor, &around);
}

}  // namespace troupe::actors
