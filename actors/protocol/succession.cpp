#include "actors/protocol/succession.hpp"

namespace troupe::actors::protocol {

std::optional<std::chrono::nanoseconds> turn_to_collect(const plan& p, member_id self,
                                                        const std::set<member_id>& gone,
                                                        std::chrono::nanoseconds between) {
  const plan_member* me = p.find(self);
  if (me == nullptr || !me->store) return std::nullopt;
  if (self == p.coordinator) return std::chrono::nanoseconds(0);
  // The coordinator's turn is the first one, unless it is gone.
  int before = gone.contains(p.coordinator) ? 0 : 1;
  for (const plan_member& m : p.members) {
    if (m.id == self) break;
    if (m.store && m.id != p.coordinator && !gone.contains(m.id)) ++before;
  }
  return before * between;
}

}  // namespace troupe::actors::protocol
