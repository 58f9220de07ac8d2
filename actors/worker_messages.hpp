// What a worker tells itself: answers of the store and the device, and timers.
#pragma once

#include <caf/all.hpp>

#include "actors/protocol/plan.hpp"
#include "actors/run_store.hpp"
#include "comm/transport.hpp"
#include "config/base/clock.hpp"

namespace troupe::actors {

struct start_known {
  starting_point from;
};
struct convener_found {
  comm::address where;
};
struct directory_fit {};
struct plan_published {
  protocol::plan plan;
};
struct state_loaded {};
struct look_for_convener {};
struct dial_again {
  member_id who;
};
struct pulse {
  time_since_start due;
};
struct end_now {};
struct waited_long_enough {};
struct failed {
  error why;
};
// --- from plan to plan ---
struct still_now {};     // no update runs any more
struct rolled_forward {  // a block is at the plan's base
  generation plan;
};
struct collect_turn {  // it is this member's turn to collect, if nobody has
  generation next;
  std::string why;
};
struct ask_promises_again {
  generation next;
};
struct promises_overdue {  // whoever has not answered is not waited for
  generation next;
};
struct next_published {
  protocol::plan plan;  // that stands in the chain, mine or another's
};
struct stranger_overdue {  // whoever is in the plan no more has not ended its link
  member_id who;
  incarnation life;
};
struct adopt_own {  // the plan that this member has published, once the others have been told
  protocol::plan plan;
};
struct let_them_in {};        // whoever came has had time to link to the others
struct leave_window_over {};  // whoever was told to leave with others has said so by now
struct still_too_few {};      // nobody has come for too long
struct publish_failed {
  error why;
};
struct newest_plan_read {
  std::uint64_t question;
  protocol::plan plan;
};

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::start_known)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::convener_found)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::directory_fit)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::plan_published)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::state_loaded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::look_for_convener)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::dial_again)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::pulse)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::end_now)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::waited_long_enough)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::still_now)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::rolled_forward)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::collect_turn)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::ask_promises_again)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::promises_overdue)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::next_published)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::adopt_own)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::let_them_in)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::still_too_few)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::publish_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::newest_plan_read)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::stranger_overdue)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::leave_window_over)
