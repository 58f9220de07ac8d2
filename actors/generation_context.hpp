// What the actors of one plan share in one process. Everything here lives on the loop's thread and
// ends with the plan: a generation is never edited, the next plan gets a context and actors of its
// own.
#pragma once

#include <functional>
#include <memory>

#include "actors/computation.hpp"
#include "actors/protocol/plan.hpp"
#include "actors/protocol_points.hpp"
#include "actors/router.hpp"
#include "comm/transport.hpp"
#include "config/base/clock.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {

class exchange;

struct generation_context {
  protocol::plan plan;
  member_id self;
  computation& work;
  exchange& bulk;
  router& mail;
  protocol_points& points;
  // This member's part of the run ends for this reason. Returns at once.
  std::function<void(const error&)> fail;
  // For what a member tells of its own costs; nothing is decided by it.
  const clock_source& clock;
  const comm::transport& lanes;
  std::function<std::uint64_t()> peak_memory;  // bytes of this process; empty: unknown

  const protocol::plan_member& me() const { return *plan.find(self); }
};

using shared_context = std::shared_ptr<generation_context>;

// What an exception of a job says.
error error_of(const std::exception_ptr& trouble);
// The same of an exception that left an actor.
error error_of(const char* actor, const std::exception_ptr& trouble);

// If an exception leaves this actor, its member's part of the run ends, with the actor's name.
void guard(caf::scheduled_actor* self, const shared_context& around);

}  // namespace troupe::actors
