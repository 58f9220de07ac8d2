// What the worker actor knows and does, for the files that it fills: worker.cpp (meeting, adopting
// a plan, ending), worker_change.cpp (from one plan to the next), worker_losses.cpp (who is lost)
// and worker_links.cpp (links to the others). Nobody else includes this.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "actors/exchange.hpp"
#include "actors/messages.hpp"
#include "actors/protocol/collection.hpp"
#include "actors/protocol/enough_members.hpp"
#include "actors/redial.hpp"
#include "actors/roll_call.hpp"
#include "actors/worker.hpp"
#include "actors/worker_messages.hpp"

namespace troupe::actors {

// As the probe of the run directory knows a process.
inline probed_member probed(const comm::facts& f) {
  return {*f.wish, fmt::format("{} {}", f.slot, f.life.value), f.slot, f.host};
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
    if (context_ || (settings().joins && let_in_by_ && links_.contains(*let_in_by_))) return;
    convener_at_ = where;
    links_to(settings().convener);
  }
  void look();
  void met(const introduced& m);
  void not_met(const not_introduced& m);
  void turned_away(const std::string& why) { around_->coordination.records.visitor_refused(why); }
  void give_up_waiting();
  void publish_plan();
  void first_published(const protocol::plan& plan);

  // Adopting.
  void adopt(protocol::plan plan);
  void loaded() {
    state_here_ = true;
    ready_if_complete();
  }
  void take(const incoming& m);
  void link_and_send(member_id to, const protocol::message& what);

  // From plan to plan.
  void want_change();
  void collect_now(const std::string& why);
  void collect_in_turn(generation next, const std::string& why);
  void repeat_question(generation next);
  void stop_waiting(generation next);
  void still();
  void boundary(generation of);
  void let_them_leave();
  void let_newcomers_in();
  void give_up_if_too_few();
  void published(const protocol::plan& plan);
  void adopt_published(const protocol::plan& plan);
  void not_published(const error& why);
  void drop_stranger(member_id id, incarnation life);
  void chain_read(std::uint64_t question, const protocol::plan& newest);
  void at_base(generation plan);

  // Ending.
  void lost_link(const link_ended& m);
  void dial(member_id who);
  void fail(const error& why);
  void damaged(const transfer_damaged& m);
  void stop(const stop_asked& what);
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
  struct loss {
    incarnation life;
    bool proven = false;  // its process does not exist any more
    std::string how;
    time_since_start noticed{}, heard{};
  };
  struct member_link {
    comm::link_id link;
    bool we_dialled;
  };

  const worker_settings& settings() const { return around_->settings; }
  introductions& gate() { return around_->gate; }
  member_id self() const { return *settings().me.wish; }
  time_since_start now() const { return around_->clock.now(); }
  void reached(protocol_point at, std::optional<member_id> to = {}) const {
    around_->points.reached(self(), at, doing(), to);
  }
  std::uint64_t doing() const { return lasting_.seen + 1; }  // the step
  template <class T, class Message>
  run_store::answer<T> tell(Message make) {
    return [me = self_, make](const result<T>& r) {
      if (!r) return caf::anon_send(me, failed{r.failure()});
      caf::anon_send(me, make(*r));
    };
  }

  void convene_if_complete();
  std::vector<probed_member> members_to_probe() const;
  caf::actor peer_of(member_id id, incarnation life);
  void drop_peer(member_id id);
  bool welcome(const introduced& m);
  bool welcome_to_world(const comm::facts& who);
  bool is_stranger(member_id id) const;
  void closed_at_once(const introduced& m);
  void shown(const protocol::plan& present);
  void meet_coordinator_of(const protocol::plan& plan);
  void links_to(member_id who);
  void links_to_later(member_id who);
  void dial_after(std::chrono::nanoseconds pause, member_id who);
  // How long a member may be silent; at the start some are slow to take what they hold.
  std::chrono::nanoseconds silence() const {
    const bool starts =
        !context_ || (phase_ == phase::adopting && context_->plan.verdict == "start");
    return starts ? 10 * settings().evict : settings().evict;
  }
  void link_to_neighbours();
  void connect_bulk(const protocol::address_table& table);
  void ready_if_complete();
  void lose(member_id who, const std::string& how, bool proven = false);

  bool is_former(const comm::facts& who) const {
    const auto known = former_.find(*who.wish);
    return known != former_.end() && who.life <= known->second;
  }
  bool coordinates() const { return context_ && context_->plan.coordinator == self(); }
  bool is_gone(const protocol::plan_member& m) const {
    const auto known = gone_.find(m.id);
    return known != gone_.end() && known->second.life == m.life;
  }
  void promise_next(generation next);
  void end_generation();
  void answer_promises();
  protocol::promise my_promise() const;
  void take(member_id from, const protocol::collect& m);
  void take(member_id from, const protocol::promise& m);
  void take(member_id from, const protocol::member_gone& m);
  void wants_to_leave(member_id who, const protocol::stop_wish& wish);
  bool all_want_to_leave() const;
  bool run_is_to_stop() const;
  void stop_the_run();
  void leave();
  void give_up(const protocol::plan_member& m, const loss& how);
  void mark(const char* what, member_id who);
  bool is_heard(member_id who) const;
  void ask_for_promises(bool again = false);
  void collect_after_others(std::chrono::nanoseconds pause, const std::string& why);
  void publish_if_complete();
  protocol::next_plan_settings next_settings() const;
  std::vector<protocol::copy_plan::copy> copies_to_make() const;
  std::string reason_of_change() const;
  void end_when_said(const std::function<bool(member_id)>& to, std::chrono::nanoseconds at_most);
  world_change change_to(const protocol::plan& next) const;
  void uncovered(const std::vector<block_id>& blocks);
  void note_former(const protocol::plan& next);
  void link_ahead(const protocol::plan& present);
  void take_over_newcomers();
  void tidy_links(const protocol::plan& now);
  status open_generation(protocol::plan plan);
  void begin_generation();
  void take_state(const member_share& share);
  coordinator_start start_of_coordinator() const;
  // `first`: the cause is known here and passed to the others, who did not tell it.
  void end_with(const ending& how, bool first = true);
  void end_unlisted(const error& why);
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
  bool whole_run_stops_ = false, drained_ = false;

  // What is kept from before the context of a plan to after it.
  std::shared_ptr<router> mail_;
  std::shared_ptr<peer_surroundings> peer_around_;
  std::map<member_id, member_link> links_;
  std::map<comm::link_id, member_id> dialled_;  // made by us, not introduced yet
  std::optional<redial> redial_;

  std::shared_ptr<exchange> bulk_;
  shared_context context_;
  caf::actor rank_, coordinator_;
  // Actors and jobs of a plan may still run when the worker is gone.
  std::shared_ptr<lasting_facts> lasting_owner_ = std::make_shared<lasting_facts>();
  lasting_facts& lasting_ = *lasting_owner_;
  std::size_t behind_base_ = 0;  // blocks that are still rolled forward

  // From plan to plan.
  std::map<member_id, incarnation> lives_;  // of peers
  generation shown_;  // of one that joins: the newest plan that it was told of
  // Peers of those who are in no plan any more. As long as such a process may live, it remembers
  // what was said, so whoever would begin anew with it would not be understood.
  std::map<member_id, std::pair<incarnation, caf::actor>> retired_;
  std::map<member_id, incarnation> former_;        // were in a plan, and are in none any more
  std::map<member_id, loss> gone_;                 // of members of the present plan
  std::map<member_id, loss> suspects_;             // ... that this member alone cannot reach
  std::map<member_id, time_since_start> accused_;  // when it last said so
  static constexpr unsigned complaints_to_part = 3;
  std::map<std::pair<member_id, member_id>, unsigned> complaints_;  // from, about
  std::map<member_id, protocol::stop_wish> leaving_;  // members that were told to leave
  bool leave_window_open_ = false;
  member_id collector_;                         // whoever asked for the last promise
  std::map<member_id, comm::facts> newcomers_;  // linked, and not in a plan yet
  // Linked to one that does not coordinate, for when they are in a plan.
  std::map<member_id, comm::facts> acquainted_;
  bool join_window_open_ = false;
  // Of one that joins: who coordinates the world, and whom it links to before it is in a plan.
  std::optional<member_id> let_in_by_;
  std::map<comm::link_id, member_id> ahead_;
  generation promised_;       // highest number that was promised
  std::set<member_id> owed_;  // who is waiting for this member's promise
  std::optional<protocol::collection> collecting_;
  std::optional<protocol::plan> next_;  // to be adopted once no update runs
  std::string collect_why_;
  time_since_start uncovered_since_{};
  std::vector<block_id> missing_blocks_;  // told already
  bool publishing_next_ = false, at_boundary_ = false;
  // Whether the present plan is the newest one: asked so often, asked now, and answered.
  std::uint64_t chain_questions_ = 0;
  bool chain_asked_ = false, chain_known_ = false;
  time_since_start noticed_{}, unblocked_{};  // of the change that is under way
  std::vector<world_change::mark> marks_;     // of the change that is under way
  std::optional<protocol::enough_members> enough_;
  // What this member's own collection leads to, if its plan wins.
  std::optional<world_change> coming_;
  std::optional<generation> coming_plan_;
  std::set<member_id> unlinked_;  // neighbours whose link is not there yet
  bool bulk_connected_ = false, state_here_ = false, ready_said_ = false;
  time_since_start watching_since_{};

  ending how_;
  std::optional<member_id> lost_;  // the one for whom this member ends
  bool first_to_know_ = false;
  std::set<member_id> talking_;  // peers that still have something to say
};

}  // namespace troupe::actors
