#include <fmt/format.h>

#include <algorithm>

#include "actors/worker_state.hpp"

namespace troupe::actors {

// --- who is gone ---

// Another member cannot reach one that is heard here. Both live, so one of the two has to leave if
// it lasts: the one that more members complain about, of two with as many the one that came later.
void worker_state::take(member_id from, const protocol::member_gone& m) {
  if (!coordinates() || context_->over || phase_ >= phase::ending) return;
  const protocol::plan_member* listed = context_->plan.find(m.who);
  if (listed == nullptr || listed->life != m.life || m.who == self()) return;
  if (from == m.who) return lose(m.who, m.how, true);  // its own last words
  const std::optional<time_since_start> heard = gate().last_heard(m.who);
  if (!links_.contains(m.who) || !heard || now() - *heard > settings().suspect) return;
  unsigned& told = complaints_[{from, m.who}];
  if (++told < complaints_to_part) return;
  const auto against = [&](member_id who) {
    return std::ranges::count_if(complaints_, [&](const auto& c) {
      return c.first.second == who && c.second >= complaints_to_part;
    });
  };
  member_id leaves = m.who;
  if (from != self() &&
      (against(from) > against(m.who) || (against(from) == against(m.who) && from > m.who))) {
    leaves = from;
  }
  lose(leaves, fmt::format("it and {} do not reach each other: {}",
                           name_of(leaves == from ? m.who : from), m.how));
}

void worker_state::lose(member_id who, const std::string& how, bool proven) {
  if (phase_ >= phase::ending) return;
  if (!context_ || (phase_ == phase::adopting && context_->plan.verdict == "start")) {
    lost_ = who;  // nobody waits until it has taken the farewell
    return fail({exit_code::too_few, fmt::format("{} is lost: {}", name_of(who), how)});
  }
  const protocol::plan_member* listed = context_->plan.find(who);
  if (listed == nullptr || is_gone(*listed)) return;
  reached(protocol_point::suspected);
  if (collecting_ || (coordinates() && !context_->over)) {
    if (noticed_ == time_since_start{}) noticed_ = now();
    give_up(*listed, {listed->life, proven, how, now(),
                      around_->gate.last_heard(who).value_or(time_since_start())});
    if (!collecting_) return collect_now(fmt::format("{} is lost: {}", name_of(who), how));
    return publish_if_complete();
  }
  // It may be this member that is cut off: what it says is weighed by others.
  const auto [suspect, fresh] = suspects_.try_emplace(who);
  loss& what = suspect->second;
  if (fresh || what.life != listed->life) {
    what.noticed = now();
    what.heard = around_->gate.last_heard(who).value_or(time_since_start());
  }
  what.life = listed->life;
  what.proven = proven;
  what.how = how;
  const bool leads = context_->over ? who == collector_ : who == context_->plan.coordinator;
  if (leads) {
    if (noticed_ == time_since_start{}) noticed_ = now();
    return collect_after_others(std::chrono::nanoseconds(0),
                                fmt::format("{} is lost: {}", name_of(who), how));
  }
  mail_->to_coordinator(protocol::member_gone{who, listed->life, proven, how});
}

void worker_state::mark(const char* what, member_id who) {
  constexpr std::size_t most = 4096;  // promises are asked for again and again
  const protocol::plan_member* m = context_ ? context_->plan.find(who) : nullptr;
  const auto newcomer = newcomers_.find(who);
  if (marks_.size() >= most) return;
  if (m != nullptr) return marks_.push_back({what, m->name, now()});
  if (newcomer != newcomers_.end()) marks_.push_back({what, newcomer->second.slot, now()});
}

// Its peer stays until there is a plan without it: if it is in the next plan after all, the two
// have to go on where their conversation was.
void worker_state::give_up(const protocol::plan_member& m, const loss& how) {
  gone_[m.id] = how;
  mark("lost", m.id);
  const auto newcomer = newcomers_.find(m.id);
  if (!collecting_) return;
  collecting_->gone(m.id, how.proven);
  if (newcomer != newcomers_.end()) collecting_->newcomer(candidate_from(newcomer->second));
}

// Is the member heard, over a link that is there?
bool worker_state::is_heard(member_id who) const {
  const std::optional<time_since_start> heard = around_->gate.last_heard(who);
  return links_.contains(who) && heard && now() - *heard <= settings().suspect;
}

void worker_state::collect_in_turn(generation next, const std::string& why) {
  if (!context_ || next.value != context_->plan.number.value + 1 || collecting_) return;
  const member_id leads = context_->over ? collector_ : context_->plan.coordinator;
  // It is back, and asks or decides itself.
  if (leads != self() && suspects_.contains(leads) && is_heard(leads)) return;
  collect_now(why);
}

}  // namespace troupe::actors
