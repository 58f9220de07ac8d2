#include "actors/peer.hpp"

#include "actors/generation_context.hpp"
#include "actors/messages.hpp"
#include "actors/wire/codec.hpp"

namespace troupe::actors {
namespace {

struct timer_due {
  time_since_start at;
};

}  // namespace
}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::timer_due)

namespace troupe::actors {
namespace {

class peer_state {
 public:
  static inline const char* name = "peer";

  void begin(caf::event_based_actor* self, const peer_surroundings& around,
             const comm::conversation_settings& settings) {
    actor_ = self;
    self_ = caf::actor_cast<caf::actor>(self);
    around_ = &around;
    who_ = settings.peer;
    talk_.emplace(settings);
  }

  void say(const outgoing& m) {
    if (status queued = talk_->send(around_->plan, wire::encode(m.what), now()); !queued) {
      return fail(queued.failure());
    }
    flush();
    around_->mail.tell(m.mark, who_);
  }
  void linked(comm::link_id link) {
    link_ = link;
    talk_->link_up(now());
    flush();
  }
  void unlinked() {
    link_.reset();
    talk_->link_down();
  }
  void hear(const comm::bytes& frame) {
    comm::received heard = talk_->receive(comm::bytes_view(frame), now());
    for (comm::message& m : heard.messages) {
      result<protocol::message> what = wire::decode(m.payload);
      if (!what) return fail(what.failure());
      around_->mail.deliver(who_, m.plan, std::move(*what));
    }
    flush();
  }
  void finish() {
    finishing_ = true;
    flush();
  }
  void fail(const error& why) { caf::anon_send(around_->mail.worker, peer_failed{who_, why}); }
  void timer(time_since_start at) {
    if (timer_at_ == at) timer_at_.reset();
    flush();
  }

 private:
  time_since_start now() const { return around_->clock.now(); }

  // Lets out what may go out, and comes back when something more is due.
  void flush() {
    if (link_) {
      for (comm::bytes& frame : talk_->take_frames(now())) {
        around_->lane.send(*link_, std::move(frame));
      }
    }
    if (finishing_ && talk_->quiet()) {
      finishing_ = false;
      caf::anon_send(around_->mail.worker, peer_quiet{who_});
    }
    const std::optional<time_since_start> due = link_ ? talk_->next_deadline() : std::nullopt;
    if (!due || (timer_at_ && *timer_at_ <= *due)) return;
    timer_at_ = due;
    actor_->delayed_send(self_, std::max(time_since_start(0), *due - now()), timer_due{*due});
  }

  caf::event_based_actor* actor_ = nullptr;
  caf::actor self_;
  const peer_surroundings* around_ = nullptr;
  member_id who_;
  std::optional<comm::conversation> talk_;
  std::optional<comm::link_id> link_;
  std::optional<time_since_start> timer_at_;  // the earliest timer that is set
  bool finishing_ = false;
};

caf::behavior peer_actor(caf::stateful_actor<peer_state>* self, const peer_surroundings* around,
                         const comm::conversation_settings& settings) {
  self->state.begin(self, *around, settings);
  self->set_exception_handler([self](std::exception_ptr& trouble) -> caf::error {
    self->state.fail(error_of(self->name(), trouble));
    return caf::sec::runtime_error;
  });
  return {
      [self](const outgoing& m) { self->state.say(m); },
      [self](const peer_linked& m) { self->state.linked(m.link); },
      [self](const peer_unlinked&) { self->state.unlinked(); },
      [self](const peer_frame& m) { self->state.hear(m.frame); },
      [self](const peer_finish&) { self->state.finish(); },
      [self](const timer_due& m) { self->state.timer(m.at); },
  };
}

}  // namespace

caf::actor spawn_peer(caf::event_based_actor* parent, const peer_surroundings& around,
                      const comm::conversation_settings& settings) {
  return parent->spawn<caf::linked>(peer_actor, &around, settings);
}

}  // namespace troupe::actors
