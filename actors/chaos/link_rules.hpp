// Kinds of faults that strike messages, as rules of the filter: what a scenario calls cut, drop or
// corrupt is the same rule in a worker and in a simulated world. Also the names that a scenario
// gives to messages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/chaos/order.hpp"
#include "comm/message_faults.hpp"

namespace troupe::actors::chaos {

std::optional<comm::message_fault> message_fault_of(
    fault_kind kind);  // nothing: it strikes members

// Requires a kind that strikes messages.
comm::message_rule rule_of(const worker_order& o);

// "vote", "record_notice", ...: messages of the control lane; "node", "sum", ... of the bulk lane.
const std::vector<std::string>& message_names();
// The name of a control frame's payload or of a bulk message's header; "": it is none of ours.
std::string name_of_message(comm::message_plane plane, std::span<const std::byte> what);

}  // namespace troupe::actors::chaos
