#include "actors/protocol/neighbours.hpp"

#include <algorithm>
#include <set>

#include "config/base/error.hpp"

namespace troupe::actors::protocol {

std::vector<member_id> watched(const plan& p, member_id self) {
  std::set<member_id> found;
  const auto me = std::ranges::find(p.members, self, &plan_member::id);
  ensure(me != p.members.end(), "a stranger asked a plan for its neighbours");
  const std::size_t at = static_cast<std::size_t>(me - p.members.begin());
  const std::size_t count = p.members.size();
  found.insert(p.members[(at + 1) % count].id);
  found.insert(p.members[(at + count - 1) % count].id);
  if (self == p.coordinator) {
    for (const plan_member& m : p.members) found.insert(m.id);
  } else {
    found.insert(p.coordinator);
  }
  found.erase(self);
  return {found.begin(), found.end()};
}

std::vector<member_id> neighbours(const plan& p, member_id self) {
  const std::vector<member_id> near = watched(p, self);
  std::set<member_id> found(near.begin(), near.end());
  for (const placed_blocks& part : p.placement) {
    // Backups say something to their primary, not to each other.
    if (part.primary == self) found.insert(part.backups.begin(), part.backups.end());
    if (std::ranges::binary_search(part.backups, self)) found.insert(part.primary);
  }
  found.erase(self);
  return {found.begin(), found.end()};
}

}  // namespace troupe::actors::protocol
