#include "actors/worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "actors/exchange.hpp"
#include "actors/first_plan.hpp"
#include "actors/messages.hpp"
#include "actors/plan_text.hpp"
#include "actors/protocol/neighbours.hpp"
#include "actors/rank.hpp"
#include "actors/redial.hpp"
#include "actors/roll_call.hpp"
#include "actors/worker_messages.hpp"

namespace troupe::actors {
namespace {

constexpr std::chrono::milliseconds ask_again{200};

probed_member probed(const comm::facts& f) {
  return {*f.wish, fmt::format("{} {}", f.slot, f.life.value), f.slot, f.host};
}

// Why a plan has no place for this process; nothing: it has one.
std::optional<std::string> not_in(const protocol::plan& plan, const comm::facts& who) {
  const protocol::plan_member* m = who.wish ? plan.find(*who.wish) : nullptr;
  if (m != nullptr && m->life == who.life) return std::nullopt;
  return fmt::format(
      "the run goes on with {} member{} since step {}, and {}; it takes nobody in before it is "
      "started again",
      plan.members.size(), plan.members.size() == 1 ? "" : "s", plan.base,
      m != nullptr
          ? fmt::format("its {} is another process ({} on {})", who.slot, m->address, m->host)
          : fmt::format("{} is none of them", who.slot));
}

class worker_state {
 public:
  static inline const char* name = "worker";

  void begin(caf::event_based_actor* self, const worker_surroundings& around);

  // Meeting.
  void start_is(const starting_point& from) {
    start_ = from;
    convene_if_complete();
  }
  void found(const comm::address& where) {
    convener_at_ = where;
    links_to(settings().convener);
  }
  void look();
  void met(const introduced& m);
  void not_met(const not_introduced& m);
  void turned_away(const std::string& why) { around_->coordination.records.visitor_refused(why); }
  void give_up_waiting();
  void publish_plan();

  // Adopting.
  void adopt(protocol::plan plan);
  void loaded() {
    state_here_ = true;
    ready_if_complete();
  }
  void take(const incoming& m);

  // Ending.
  void lost_link(const link_ended& m);
  void dial(member_id who);
  void fail(const error& why);
  void stop(const std::string& why);
  void quiet(member_id who) {
    talking_.erase(who);
    end_if_quiet();
  }
  void end();
  // Not even this actor works any more: nobody is told but the owner of the process.
  void end_at_once(const error& why) {
    how_ = {why.code, why.message, true};
    end();
  }
  void beat(time_since_start due);

 private:
  enum class phase : std::uint8_t { meeting, adopting, working, ending, ended };
  struct member_link {
    comm::link_id link;
    bool we_dialled;
  };

  const worker_settings& settings() const { return around_->settings; }
  introductions& gate() { return around_->gate; }
  member_id self() const { return *settings().me.wish; }
  time_since_start now() const { return around_->clock.now(); }
  template <class T, class Message>
  run_store::answer<T> tell(Message make) {
    return [me = self_, make](result<T> r) {
      if (!r) return caf::anon_send(me, failed{r.failure()});
      caf::anon_send(me, make(std::move(*r)));
    };
  }

  void convene_if_complete();
  std::vector<probed_member> members_to_probe() const;
  caf::actor peer_of(member_id id, incarnation life);
  bool welcome(const introduced& m);
  void links_to(member_id who);
  void dial_after(std::chrono::nanoseconds pause, member_id who);
  // How long a member may be silent; at the start some are slow to take what they hold.
  std::chrono::nanoseconds silence() const {
    return phase_ == phase::working ? settings().evict : 10 * settings().evict;
  }
  void link_to_neighbours();
  void connect_bulk(const protocol::address_table& table);
  void ready_if_complete();
  void lose(member_id who, const std::string& how);
  // `first`: the cause is known here and passed to the others, who did not tell it.
  void end_with(const ending& how, bool first = true);
  void say_farewell();
  void end_if_quiet();
  std::string name_of(member_id who) const;

  caf::event_based_actor* actor_ = nullptr;
  caf::actor self_;
  const worker_surroundings* around_ = nullptr;
  phase phase_ = phase::meeting;

  std::optional<starting_point> start_;
  std::optional<comm::address> convener_at_;
  time_since_start give_up_convener_{};
  std::optional<roll_call> others_;
  std::set<member_id> absent_;  // of the others: without a link before there is a plan
  bool publishing_ = false;
  std::string stop_why_;

  // What is kept from before the context of a plan to after it.
  std::shared_ptr<router> mail_;
  std::shared_ptr<peer_surroundings> peer_around_;
  std::map<member_id, member_link> links_;
  std::map<comm::link_id, member_id> dialled_;  // made by us, not introduced yet
  std::optional<redial> redial_;

  std::shared_ptr<exchange> bulk_;
  shared_context context_;
  caf::actor rank_;
  std::set<member_id> unlinked_;  // neighbours whose link is not there yet
  bool bulk_connected_ = false, state_here_ = false, ready_said_ = false;
  time_since_start watching_since_{};

  ending how_;
  std::optional<member_id> lost_;  // the one for whom this member ends
  bool first_to_know_ = false;
  std::set<member_id> talking_;  // peers that still have something to say
};

void worker_state::begin(caf::event_based_actor* self, const worker_surroundings& around) {
  actor_ = self;
  self_ = caf::actor_cast<caf::actor>(self);
  around_ = &around;
  others_.emplace(settings().me, settings().expected);
  mail_ = std::make_shared<router>(this->self());
  mail_->worker = self_;
  redial_.emplace(this->self(), redial::limits());
  mail_->set_coordinator(settings().convener);
  peer_around_ = std::make_shared<peer_surroundings>(
      peer_surroundings{around.transport.control(), *mail_, around.clock, generation()});
  around.kept.insert(around.kept.end(), {mail_, peer_around_});
  // All actors of the process are linked below this one: whichever ends by an exception ends here.
  self->set_exit_handler([this](const caf::exit_msg& m) {
    if (!m.reason || phase_ >= phase::ending) return;
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

caf::actor worker_state::peer_of(member_id id, incarnation life) {
  const auto there = mail_->peers().find(id);
  if (there != mail_->peers().end()) return there->second;
  comm::conversation_settings talk;
  talk.run_id = settings().me.run_id;
  talk.self = self();
  talk.peer = id;
  talk.self_life = settings().me.life;
  talk.peer_life = life;
  caf::actor peer = spawn_peer(actor_, *peer_around_, talk);
  mail_->set_peer(id, peer);
  return peer;
}

// Is whoever came one of those that this member talks to?
bool worker_state::welcome(const introduced& m) {
  if (!m.who.wish || *m.who.wish == self() || phase_ == phase::ended) return false;
  const member_id who = *m.who.wish;
  // Who did not hear the farewell yet comes again for it.
  if (phase_ == phase::ending && !talking_.contains(who)) return false;
  if (context_) {
    const protocol::plan_member* listed = context_->plan.find(who);
    return listed != nullptr && listed->life == m.who.life;
  }
  switch (others_->note(m.who)) {
    case roll_call::entry::outlived:
      return false;
    case roll_call::entry::replaces:
      mail_->remove_peer(who);
      if (const auto old = links_.find(who); old != links_.end()) {
        gate().close(old->second.link);
        links_.erase(old);
      }
      return true;
    case roll_call::entry::taken:
      return true;
  }
  return false;
}

void worker_state::met(const introduced& m) {
  dialled_.erase(m.link);
  if (!welcome(m)) return gate().close(m.link);
  const member_id who = *m.who.wish;
  const auto old = links_.find(who);
  if (old != links_.end() && !redial_->replaces(who, old->second.we_dialled, m.we_connected)) {
    return gate().close(m.link);
  }
  const caf::actor peer = peer_of(who, m.who.life);
  if (!gate().keep(m.link, who, peer)) {
    if (old == links_.end() && (context_ || m.we_connected)) links_to(who);
    return;
  }
  if (old != links_.end()) gate().close(old->second.link);
  links_[who] = {m.link, m.we_connected};
  caf::anon_send(peer, peer_linked{m.link});
  redial_->linked(who);
  absent_.erase(who);
  unlinked_.erase(who);
  if (who == settings().convener && !context_) {
    around_->coordination.store.answer_probe(m.who.life.value, probed(settings().me),
                                             [me = self_](result<done> r) {
                                               if (!r) caf::anon_send(me, failed{r.failure()});
                                             });
  }
  convene_if_complete();
  ready_if_complete();
}

// The link to a member is missing: somebody has to dial.
void worker_state::links_to(member_id who) {
  const bool known = context_ || who == settings().convener;
  const std::chrono::nanoseconds pause = redial_->missing(who, now());
  if (known) dial_after(context_ ? pause : std::chrono::nanoseconds(0), who);
}

void worker_state::dial_after(std::chrono::nanoseconds pause, member_id who) {
  if (pause.count() == 0) return dial(who);
  actor_->delayed_send(self_, pause, dial_again{who});
}

void worker_state::dial(member_id who) {
  if (phase_ >= phase::ending || links_.contains(who)) return;
  if (std::ranges::any_of(dialled_, [&](const auto& d) { return d.second == who; })) return;
  if (!context_) {
    if (convener_at_) dialled_[gate().connect(*convener_at_)] = who;
    return;
  }
  const result<comm::address> where = comm::parse_address(context_->plan.find(who)->address);
  if (!where) return fail(where.failure());
  dialled_[gate().connect(*where)] = who;
}

void worker_state::not_met(const not_introduced& m) {
  const auto dialled = dialled_.find(m.link);
  if (dialled == dialled_.end()) return;
  const member_id who = dialled->second;
  dialled_.erase(dialled);
  if (phase_ >= phase::ending || links_.contains(who)) return;
  if (!m.refused) {
    const std::chrono::nanoseconds pause = redial_->failed(who, m.reached, now(), silence());
    if (pause != redial::never) return dial_after(pause, who);
  }
  if (context_ || (!m.refused && others_->find(who) != nullptr)) return lose(who, m.why);
  if (!m.refused && now() < give_up_convener_) {
    // What the directory says may be of an earlier start: somebody will come.
    actor_->delayed_send(self_, ask_again, look_for_convener{});
    return;
  }
  fail(
      {m.refused ? exit_code::bad_config : exit_code::too_few, "could not join the run: " + m.why});
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
  if (!stop_why_.empty()) return end_with({exit_code::interrupted, stop_why_, false});
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

// --- adopting ---

void worker_state::adopt(protocol::plan plan) {
  if (phase_ != phase::meeting || context_) return;
  const protocol::plan_member* me = plan.find(self());
  if (me == nullptr || me->life != settings().me.life) {
    // Its own trouble alone: the others have a plan and go on.
    const std::string who =
        me == nullptr ? "does not name this member" : "names another process in this member's slot";
    return end_at_once({exit_code::too_few, fmt::format("the plan {}", who)});
  }
  phase_ = phase::adopting;
  watching_since_ = now();
  if (settings().convenes) {
    const protocol::plan_notice notice{print_plan(plan)};
    for (const auto& [id, peer] : mail_->peers()) mail_->send(id, notice);
  }
  mail_->set_coordinator(plan.coordinator);
  const protocol::plan_member my = *me;
  const member_share share{plan.virtual_ranks, my.first_leaf, my.leaves,
                           protocol::blocks_primary(plan, self()),
                           protocol::blocks_backed_up(plan, self())};
  bulk_ = std::make_shared<exchange>(around_->work, *mail_, share);
  around_->kept.push_back(bulk_);
  if (status opened = bulk_->open(around_->transport, plan.number); !opened) {
    return fail(opened.failure());
  }
  context_ = std::make_shared<generation_context>(
      generation_context{std::move(plan), self(), around_->work, *bulk_, *mail_, around_->points,
                         [me = self_](const error& why) { caf::anon_send(me, failed{why}); },
                         around_->clock, around_->transport, settings().peak_memory});
  const protocol::plan& adopted = context_->plan;
  gate().admit_by([ctx = context_](const comm::facts& who) { return not_in(ctx->plan, who); });
  around_->points.plan_adopted(self(), adopted);
  around_->work.adopt(share);
  rank_ = spawn_rank(actor_, context_, around_->coordination.store);
  mail_->rank = rank_;
  starting_point from = start_.value_or(starting_point());
  from.step = adopted.base;
  const caf::actor coordinator = spawn_coordinator(actor_, context_, around_->coordination, from);
  mail_->coordinator = coordinator;
  if (adopted.base == 0) {
    around_->work.initialize([me = self_, ctx = context_](computation::trouble trouble) {
      if (trouble) return ctx->fail(error_of(trouble));
      caf::anon_send(me, state_loaded{});
    });
  } else {
    around_->coordination.store.load(adopted.base, share, around_->work,
                                     tell<done>([](done) { return state_loaded{}; }));
  }
  link_to_neighbours();
  mail_->to_coordinator(protocol::bulk_address{bulk_->local_address()});
  if (!stop_why_.empty()) mail_->to_coordinator(protocol::stop_wish{stop_why_});
}

// Control links to those whom this member says something to.
void worker_state::link_to_neighbours() {
  for (const member_id id : protocol::neighbours(context_->plan, self())) {
    if (links_.contains(id)) continue;
    unlinked_.insert(id);
    (void)peer_of(id, context_->plan.find(id)->life);
    links_to(id);
  }
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
  mail_->to_coordinator(protocol::ready{});
}

void worker_state::take(const incoming& m) {
  if (const auto* bye = std::get_if<protocol::farewell>(&m.what)) {
    if (phase_ == phase::ending) return quiet(m.from);  // who says farewell needs none
    return end_with({static_cast<exit_code>(bye->code), bye->why, false}, m.from == self());
  }
  if (const auto* wish = std::get_if<protocol::stop_wish>(&m.what)) return stop(wish->why);
  if (phase_ >= phase::ending) return;
  if (const auto* notice = std::get_if<protocol::plan_notice>(&m.what)) {
    result<protocol::plan> plan = parse_plan(notice->text, "the plan that was announced");
    if (!plan) return fail(plan.failure());
    return adopt(std::move(*plan));
  }
  if (const auto* table = std::get_if<protocol::address_table>(&m.what)) {
    if (context_) connect_bulk(*table);
  }
}

// --- living ---

void worker_state::beat(time_since_start due) {
  if (phase_ == phase::ended) return;
  // A loop that stood still has not heard anybody: that says nothing about the others.
  const bool late = now() - due > settings().evict / 3;
  gate().give_up_silent();
  const protocol::heartbeat sign{0, protocol::phase::waiting};
  if (phase_ == phase::meeting) {
    // Whoever waits for the plan watches the one who will make it.
    for (const auto& [id, link] : links_) {
      if (settings().convenes || id == settings().convener) mail_->send(id, sign);
    }
    const std::optional<time_since_start> heard = gate().last_heard(settings().convener);
    if (!late && heard && now() - *heard > silence()) {
      lose(settings().convener, "nothing was heard of it while the members met");
    }
  }
  if (context_ && phase_ < phase::ending) {
    for (const member_id id : protocol::watched(context_->plan, self())) {
      mail_->send(id, sign);
      const time_since_start heard =
          std::max(watching_since_, gate().last_heard(id).value_or(watching_since_));
      if (late || now() - heard <= silence()) continue;
      lose(id, fmt::format(
                   "nothing was heard of it for {} ms (fault_tolerance.evict_ms)",
                   std::chrono::duration_cast<std::chrono::milliseconds>(now() - heard).count()));
      break;
    }
  }
  actor_->delayed_send(self_, settings().heartbeat, pulse{now() + settings().heartbeat});
}

// A broken link is no lost member: it is dialled again, and whoever is not there is lost.
void worker_state::lost_link(const link_ended& m) {
  const auto it = links_.find(m.who);
  if (it == links_.end() || it->second.link != m.link) return;  // replaced before
  links_.erase(it);
  if (const auto peer = mail_->peers().find(m.who); peer != mail_->peers().end()) {
    caf::anon_send(peer->second, peer_unlinked{});
  }
  if (phase_ >= phase::ending) {
    // Who ended by another's farewell has nothing to say that others do not say.
    if (!first_to_know_) quiet(m.who);
    return;
  }
  if (!context_) absent_.insert(m.who);
  if (context_ && context_->plan.find(m.who) == nullptr) {
    return mail_->remove_peer(m.who);  // it came too late for the plan
  }
  if (context_ || m.who == settings().convener) links_to(m.who);
}

std::string worker_state::name_of(member_id who) const {
  if (context_) {
    if (const protocol::plan_member* m = context_->plan.find(who)) {
      return fmt::format("member {} ({} on {})", who.value, m->name, m->host);
    }
  }
  const comm::facts* other = others_->find(who);
  if (other == nullptr) return fmt::format("member {}", who.value);
  return fmt::format("member {} ({} on {})", who.value, other->slot, other->host);
}

void worker_state::lose(member_id who, const std::string& how) {
  if (phase_ >= phase::ending) return;
  if (context_ && context_->plan.coordinator == self()) {
    around_->coordination.records.member_lost(who, how);
  }
  // Nobody waits until it has taken the farewell.
  lost_ = who;
  fail({exit_code::too_few, fmt::format("{} is lost: {}", name_of(who), how)});
}

// --- ending ---

void worker_state::stop(const std::string& why) {
  if (phase_ >= phase::ending) return;
  stop_why_ = why;
  if (context_) return mail_->to_coordinator(protocol::stop_wish{why});
  if (settings().convenes) return end_with({exit_code::interrupted, why, false});
  if (!links_.empty()) return mail_->to_coordinator(protocol::stop_wish{why});
  end_with({exit_code::interrupted, why, false});
}

void worker_state::fail(const error& why) { end_with({why.code, why.message, true}); }

void worker_state::end_with(const ending& how, bool first) {
  if (phase_ >= phase::ending) return;
  phase_ = phase::ending;
  how_ = how;
  first_to_know_ = first;
  around_->work.cancel();
  say_farewell();
  for (const auto& [id, peer] : mail_->peers()) {
    if (id == lost_ || (!links_.contains(id) && !(first && redial_->is_missing(id)))) continue;
    talking_.insert(id);
    caf::anon_send(peer, peer_finish{});
  }
  // After a failure somebody may never answer; after an ordinary end nobody should miss it.
  const bool ordinary = first && !how.our_own;
  actor_->delayed_send(self_, ordinary ? settings().evict : std::chrono::milliseconds(500),
                       end_now{});
  end_if_quiet();
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
  gate().close_all();
  if (bulk_) bulk_->close();
  around_->ended(how_);
}

caf::behavior worker_actor(caf::stateful_actor<worker_state>* self,
                           const worker_surroundings* around) {
  self->set_exception_handler([self](std::exception_ptr& trouble) -> caf::error {
    self->state.end_at_once(error_of(self->name(), trouble));
    return caf::sec::runtime_error;
  });
  self->state.begin(self, *around);
  return {
      [self](const incoming& m) { self->state.take(m); },
      [self](const introduced& m) { self->state.met(m); },
      [self](const not_introduced& m) { self->state.not_met(m); },
      [self](const link_ended& m) { self->state.lost_link(m); },
      [self](const visitor_refused& m) { self->state.turned_away(m.why); },
      [self](const start_known& m) { self->state.start_is(m.from); },
      [self](const convener_found& m) { self->state.found(m.where); },
      [self](const look_for_convener&) { self->state.look(); },
      [self](const directory_fit&) { self->state.publish_plan(); },
      [self](plan_published& m) { self->state.adopt(std::move(m.plan)); },
      [self](const state_loaded&) { self->state.loaded(); },
      [self](const peer_quiet& m) { self->state.quiet(m.who); },
      [self](const peer_failed& m) { self->state.fail(m.why); },
      [self](const stop_asked& m) { self->state.stop(m.why); },
      [self](const pulse& m) { self->state.beat(m.due); },
      [self](const dial_again& m) { self->state.dial(m.who); },
      [self](const end_now&) { self->state.end(); },
      [self](const waited_long_enough&) { self->state.give_up_waiting(); },
      [self](const failed& m) { self->state.fail(m.why); },
  };
}

}  // namespace

caf::actor spawn_worker(caf::actor_system& system, const worker_surroundings& around) {
  return system.spawn(worker_actor, &around);
}

}  // namespace troupe::actors
