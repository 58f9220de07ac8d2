// What the actors of one plan share in one process. Everything here lives on the loop's thread and
// ends with the plan: a generation is never edited, the next plan gets a context and actors of its
// own.
#pragma once

#include <functional>
#include <memory>

#include "actors/computation.hpp"
#include "actors/protocol/holdings.hpp"
#include "actors/protocol/plan.hpp"
#include "actors/protocol_points.hpp"
#include "actors/router.hpp"
#include "comm/transport.hpp"
#include "config/base/clock.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {

class exchange;

// What a member keeps from one plan to the next, and answers with when it promises one.
struct lasting_facts {
  protocol::holdings held;
  std::uint64_t seen = 0;                        // newest step whose record was seen
  std::vector<protocol::record_notice> records;  // the newest, not known to be written, and `seen`
  // The whole model is here at version `seen`, and nothing that arrives is writing into it.
  bool parameters = false;
  protocol::phase doing = protocol::phase::starting;  // for whoever watches
  unsigned writing = 0;                               // saves that read the blocks' memory
  std::function<void()> when_still;  // called when the last running update or save has ended

  bool still() const { return held.still() && writing == 0; }
  void tell_if_still() const {
    if (still() && when_still) when_still();
  }
  void see(const protocol::record_notice& notice);
};

struct generation_context {
  protocol::plan plan;
  member_id self;
  computation& work;
  exchange& bulk;
  router& mail;
  protocol_points& points;
  lasting_facts& lasting;
  std::function<void(const error&)> fail_with;
  // For what a member tells of its own costs; nothing is decided by it.
  const clock_source& clock;
  const comm::transport& lanes;
  std::function<std::uint64_t()> peak_memory;  // bytes of this process; empty: unknown

  std::shared_ptr<void> keep;  // what the references above need and nobody else owns

  // The plan after it was promised: nothing of this one has an effect any more, whatever its actors
  // still have in their mailboxes and the device has still to complete.
  bool over = false;

  // This member's part of the run ends for this reason. Returns at once.
  void fail(const error& why) const {
    if (!over) fail_with(why);
  }
  const protocol::plan_member& me() const { return *plan.find(self); }
  void reached(protocol_point at, std::uint64_t step, std::optional<member_id> to = {}) const {
    points.reached(self, at, step, to);
  }
};

using shared_context = std::shared_ptr<generation_context>;

// What an exception of a job says.
error error_of(const std::exception_ptr& trouble);
// The same of an exception that left an actor.
error error_of(const char* actor, const std::exception_ptr& trouble);

// A handler that does nothing once its plan is over.
template <class Message, class Handler>
auto while_current(shared_context around, Handler handler) {
  return [around = std::move(around), handler = std::move(handler)](const Message& m) {
    if (!around->over) handler(m);
  };
}

// If an exception leaves this actor, its member's part of the run ends, with the actor's name.
void guard(caf::scheduled_actor* self, const shared_context& around);

}  // namespace troupe::actors
