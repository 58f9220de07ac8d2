#include <fmt/format.h>

#include <algorithm>

#include "actors/plan_text.hpp"
#include "actors/protocol/neighbours.hpp"
#include "actors/worker_state.hpp"

namespace troupe::actors {
namespace {

// Before the run directory is asked again where the others meet.
constexpr std::chrono::milliseconds ask_again{200};

}  // namespace

caf::actor worker_state::peer_of(member_id id, incarnation life) {
  const auto there = mail_->peers().find(id);
  if (there != mail_->peers().end()) {
    if (lives_[id] == life) return there->second;
    drop_peer(id);  // of an earlier process in that slot
  }
  lives_[id] = life;
  if (const auto retired = retired_.find(id); retired != retired_.end()) {
    const auto [was, peer] = retired->second;
    retired_.erase(retired);
    if (was == life) {
      mail_->set_peer(id, peer);
      return peer;
    }
    caf::anon_send_exit(peer, caf::exit_reason::user_shutdown);
  }
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

void worker_state::drop_peer(member_id id) {
  const auto there = mail_->peers().find(id);
  if (there != mail_->peers().end()) {
    caf::anon_send(there->second, peer_unlinked{});
    retired_[id] = {lives_[id], there->second};
    mail_->remove_peer(id);
  }
  if (const auto link = links_.find(id); link != links_.end()) {
    gate().close(link->second.link);
    links_.erase(link);
  }
  redial_->linked(id);  // nobody dials it any more
}

// Peers and links of those who are in no plan any more and do not come anew.
void worker_state::tidy_links(const protocol::plan& now) {
  for (const protocol::plan_member& m : now.members) {
    const auto came = newcomers_.find(m.id);
    if (came != newcomers_.end() && came->second.life == m.life) newcomers_.erase(came);
  }
  // Whoever is reached hears of the plan without it first, and ends its links itself.
  std::vector<member_id> over;
  for (const auto& [id, peer] : mail_->peers()) {
    if (!is_stranger(id)) continue;
    const auto former = former_.find(id);
    const bool stays =
        acquainted_.contains(id) || (former != former_.end() && lives_[id] <= former->second);
    // Another process may have its place, or it came before there was a plan, and comes anew.
    if (!links_.contains(id) || now.find(id) != nullptr || !stays) {
      over.push_back(id);
    } else {
      actor_->delayed_send(self_, settings().suspect, stranger_overdue{id, lives_[id]});
    }
  }
  for (const member_id id : over) drop_peer(id);
}

// A peer that is in no plan and does not come anew.
bool worker_state::is_stranger(member_id id) const {
  if (newcomers_.contains(id)) return false;
  const protocol::plan_member* m = context_->plan.find(id);
  return m == nullptr || m->life != lives_.at(id);
}

void worker_state::drop_stranger(member_id id, incarnation life) {
  if (!context_ || !mail_->peers().contains(id)) return;
  if (lives_[id] == life && is_stranger(id)) drop_peer(id);
}

// Of the plan that is in force until `next` is.
void worker_state::note_former(const protocol::plan& next) {
  if (!context_) return;
  for (const protocol::plan_member& m : context_->plan.members) {
    const protocol::plan_member* after = next.find(m.id);
    if (after == nullptr || after->life != m.life) former_[m.id] = m.life;
  }
}

// There is a plan: is whoever came in it, or may it wait to come in?
bool worker_state::welcome_to_world(const comm::facts& who) {
  const protocol::plan_member* listed = context_->plan.find(*who.wish);
  if (listed != nullptr && listed->life == who.life) return !is_gone(*listed);
  if (listed != nullptr && who.life < listed->life) return false;
  // It comes for the plan that does without it, and goes: nobody waits for what it would promise.
  if (is_former(who)) return true;
  // It may be listed in the next plan, and has its links before that. Not in the slot of one that
  // is still a member: the two would share a conversation.
  if (!coordinates()) {
    if (listed == nullptr) acquainted_[*who.wish] = who;
    return listed == nullptr || context_->over;
  }
  newcomers_[*who.wish] = who;
  reached(protocol_point::join_admitted);
  if (listed != nullptr && !is_gone(*listed)) {
    lose(*who.wish, "a new process has come in its slot", true);
  }
  return true;
}

// Is whoever came one of those that this member talks to?
bool worker_state::welcome(const introduced& m) {
  if (!m.who.wish || *m.who.wish == self() || phase_ == phase::ended) return false;
  const member_id who = *m.who.wish;
  // Who did not hear the farewell yet comes again for it.
  if (phase_ == phase::ending && !talking_.contains(who)) return false;
  if (context_) return welcome_to_world(m.who);
  switch (others_->note(m.who)) {
    case roll_call::entry::outlived:
      return false;
    case roll_call::entry::replaces:
      drop_peer(who);
      return true;
    case roll_call::entry::taken:
      return true;
  }
  return false;
}

void worker_state::met(const introduced& m) {
  dialled_.erase(m.link);
  const bool ahead = ahead_.erase(m.link) > 0 && !context_;
  if (!welcome(m)) return gate().close(m.link);
  const member_id who = *m.who.wish;
  const caf::actor peer = peer_of(who, m.who.life);  // ends links of an earlier life
  const auto old = links_.find(who);
  if (old != links_.end() && !redial_->replaces(who, old->second.we_dialled, m.we_connected)) {
    return gate().close(m.link);
  }
  if (!gate().keep(m.link, who, peer)) {
    if (old == links_.end() && !ahead) closed_at_once(m);
    return;
  }
  if (old != links_.end()) gate().close(old->second.link);
  links_[who] = {m.link, m.we_connected};
  caf::anon_send(peer, peer_linked{m.link});
  redial_->linked(who);
  absent_.erase(who);
  unlinked_.erase(who);
  // Whoever was in an earlier plan learns that it is no more, and a newcomer who coordinates.
  if (context_ && (newcomers_.contains(who) || context_->plan.find(who) == nullptr)) {
    mail_->send(who, protocol::plan_notice{print_plan(context_->plan)});
  }
  if (context_ && newcomers_.contains(who)) {
    if (collecting_ && !publishing_next_) {
      collecting_->newcomer(candidate_from(m.who));
      mail_->send(who, protocol::collect{context_->plan.number, collecting_->next(), ""});
    }
    if (settings().link_first.count() == 0) {
      want_change();
    } else if (!std::exchange(join_window_open_, true)) {
      actor_->delayed_send(self_, settings().link_first, let_them_in{});
    }
  }
  if (settings().joins && !context_ && !ahead) {
    let_in_by_ = who;
    mail_->set_coordinator(who);
    reached(protocol_point::join_hello, who);
  }
  if (who == settings().convener && !context_ && !settings().joins) {
    around_->coordination.store.answer_probe(m.who.life.value, probed(settings().me),
                                             [me = self_](result<done> r) {
                                               if (!r) caf::anon_send(me, failed{r.failure()});
                                             });
  }
  convene_if_complete();
  ready_if_complete();
}

// It was there, and the other side closed it before it was taken.
void worker_state::closed_at_once(const introduced& m) {
  const member_id who = *m.who.wish;
  if (!context_) {
    if (m.we_connected) links_to(who);
    return;
  }
  const std::chrono::nanoseconds pause = redial_->failed(who, true, now(), silence());
  if (pause != redial::never) return dial_after(pause, who);
  redial_->linked(who);
  lose(who, "it closes every connection");
}

// One that joins is told of the plan that does not name it yet.
void worker_state::shown(const protocol::plan& present) {
  if (present.number < shown_) return;  // by somebody who does not know the newest
  shown_ = present.number;
  if (links_.contains(present.coordinator)) return link_ahead(present);
  meet_coordinator_of(present);
}

// It has met somebody who does not coordinate, and who says who does.
void worker_state::meet_coordinator_of(const protocol::plan& plan) {
  const protocol::plan_member* leads = plan.find(plan.coordinator);
  const result<comm::address> where = comm::parse_address(leads->address);
  if (!where) return;
  std::vector<member_id> met;
  for (const auto& [id, link] : links_) met.push_back(id);
  for (const member_id id : met) drop_peer(id);
  found(*where);
}

void worker_state::let_newcomers_in() {
  join_window_open_ = false;
  if (!newcomers_.empty()) want_change();
}

// One that joins, and has met the coordinator of the plan that does not name it yet: links take
// some time, and a change would wait for it. Whoever does not answer is linked to later.
void worker_state::link_ahead(const protocol::plan& present) {
  constexpr std::size_t most = 32;  // a wide world has more members than anybody talks to
  let_in_by_ = present.coordinator;
  mail_->set_coordinator(present.coordinator);
  if (present.members.size() > most) return;
  for (const protocol::plan_member& m : present.members) {
    const bool dialled =
        std::ranges::any_of(ahead_, [&](const auto& one) { return one.second == m.id; });
    if (m.id == self() || m.id == present.coordinator || links_.contains(m.id) || dialled) continue;
    const result<comm::address> where = comm::parse_address(m.address);
    if (where) ahead_[gate().connect(*where)] = m.id;
  }
}

// Of a plan that gives this member the coordinator's role: who is linked to it waits to come in.
void worker_state::take_over_newcomers() {
  for (const auto& [id, who] : std::exchange(acquainted_, {})) {
    const auto peer = lives_.find(id);
    const bool same = links_.contains(id) && peer != lives_.end() && peer->second == who.life;
    const protocol::plan_member* listed = context_->plan.find(id);
    if (!same || is_former(who) || (listed != nullptr && listed->life >= who.life)) continue;
    if (coordinates()) newcomers_.emplace(id, who);
  }
}

// The link to a member is missing: somebody has to dial.
void worker_state::links_to(member_id who) {
  const bool known = context_ || who == settings().convener;
  const std::chrono::nanoseconds pause = redial_->missing(who, now());
  if (known) dial_after(context_ ? pause : std::chrono::nanoseconds(0), who);
}

// Control links are made to those whom the plan makes this member talk to; a copy may come from
// anybody.
void worker_state::link_and_send(member_id to, const protocol::message& what) {
  if (!context_ || context_->over || phase_ >= phase::ending) return;
  const protocol::plan_member* listed = context_->plan.find(to);
  if (listed == nullptr || is_gone(*listed)) return;
  (void)peer_of(to, listed->life);
  mail_->send(to, what);
  if (!links_.contains(to)) links_to(to);
}

void worker_state::links_to_later(member_id who) {
  (void)redial_->missing(who, now());
  dial_after(settings().suspect / 4, who);
}

void worker_state::dial_after(std::chrono::nanoseconds pause, member_id who) {
  if (pause.count() == 0) return dial(who);
  actor_->delayed_send(self_, pause, dial_again{who});
}

void worker_state::dial(member_id who) {
  if (phase_ >= phase::ending) return;
  // Who joins looks for the coordinator, whichever member that is.
  if (links_.contains(who) && (context_ || !settings().joins)) return;
  if (std::ranges::any_of(dialled_, [&](const auto& d) { return d.second == who; })) return;
  if (!context_) {
    if (convener_at_) dialled_[gate().connect(*convener_at_)] = who;
    return;
  }
  const protocol::plan_member* listed = context_->plan.find(who);
  if (listed == nullptr || is_gone(*listed)) return;
  const result<comm::address> where = comm::parse_address(listed->address);
  if (!where) return fail(where.failure());
  dialled_[gate().connect(*where)] = who;
}

void worker_state::not_met(const not_introduced& m) {
  if (ahead_.erase(m.link) > 0) return;
  const auto dialled = dialled_.find(m.link);
  if (dialled == dialled_.end()) return;
  const member_id who = dialled->second;
  dialled_.erase(dialled);
  if (phase_ >= phase::ending || links_.contains(who)) return;
  if (!m.refused) {
    const std::chrono::nanoseconds pause = redial_->failed(who, m.reached, now(), silence());
    if (pause != redial::never) return dial_after(pause, who);
  }
  if (context_ && m.refused) {
    // Another process has this member's place: it goes, as one that leaves does.
    return end_unlisted({exit_code::interrupted, "this process is not wanted any more: " + m.why});
  }
  if (context_) {
    lose(who, m.why);
    // Whoever does not decide that it is gone goes on trying.
    const protocol::plan_member* listed = context_->plan.find(who);
    if (phase_ < phase::ending && listed != nullptr && !is_gone(*listed)) {
      redial_->linked(who);
      links_to_later(who);
    }
    return;
  }
  if (!settings().joins && !m.refused && others_->find(who) != nullptr) return lose(who, m.why);
  if (!m.refused && now() < give_up_convener_) {
    // What the directory says may be of an earlier start: somebody will come.
    actor_->delayed_send(self_, ask_again, look_for_convener{});
    return;
  }
  fail(
      {m.refused ? exit_code::bad_config : exit_code::too_few, "could not join the run: " + m.why});
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

void worker_state::beat(time_since_start due) {
  if (phase_ == phase::ended) return;
  // A loop that stood still has not heard anybody: that says nothing about the others, who get as
  // long again.
  const bool late = now() - due > settings().evict / 3;
  gate().give_up_silent();
  const bool works = context_ && !context_->over;
  const protocol::heartbeat sign{works ? lasting_.seen + 1 : 0,
                                 works ? lasting_.doing : protocol::phase::waiting};
  if (phase_ == phase::meeting) {
    // Whoever waits for the plan watches the one who will make it.
    for (const auto& [id, link] : links_) {
      if (settings().convenes || id == settings().convener) mail_->send(id, sign);
    }
    const std::optional<time_since_start> heard = gate().last_heard(settings().convener);
    if (!settings().joins && !late && heard && now() - *heard > silence()) {
      lose(settings().convener, "nothing was heard of it while the members met");
    }
  }
  if (context_ && phase_ < phase::ending) {
    if (late) watching_since_ = now();
    if (coordinates()) mail_->send(self(), sign);  // it is watched too
    for (const member_id id : protocol::watched(context_->plan, self())) {
      if (is_gone(*context_->plan.find(id))) continue;
      mail_->send(id, sign);
      const time_since_start heard =
          std::max(watching_since_, gate().last_heard(id).value_or(watching_since_));
      if (late || now() - heard <= silence()) continue;
      time_since_start& said = accused_[id];
      if (said != time_since_start{} && now() - said < settings().suspect) continue;
      said = now();
      lose(id, fmt::format(
                   "nothing was heard of it for {} ms (fault_tolerance.evict_ms)",
                   std::chrono::duration_cast<std::chrono::milliseconds>(now() - heard).count()));
      if (phase_ >= phase::ending || context_->over) break;
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
    // Who ended by another's farewell has nothing to say that others do not say, and whoever is in
    // no plan does not come again for it.
    const bool listed = !context_ || context_->plan.find(m.who) != nullptr;
    if (!first_to_know_ || !listed) quiet(m.who);
    return;
  }
  if (!context_) absent_.insert(m.who);
  if (context_) {
    newcomers_.erase(m.who);
    const protocol::plan_member* listed = context_->plan.find(m.who);
    if (listed == nullptr || is_gone(*listed) || lives_[m.who] != listed->life) {
      if (collecting_) collecting_->gone(m.who, false);
      drop_peer(m.who);
      return publish_if_complete();
    }
  }
  if (settings().joins && !context_ && let_in_by_ != m.who) return;
  if (settings().joins && !context_) {  // it may have lost its role: the directory says who has it
    actor_->delayed_send(self_, ask_again, look_for_convener{});
    return;
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

}  // namespace troupe::actors
