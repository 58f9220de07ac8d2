// Who a target is now. "coordinator" or "backup:7" is somebody else after every plan, so a target
// is looked up when its fault is due and not before.
//
// Where several members fit (any, holder, backup, layer) one is drawn; `prefer` lets the drawer
// keep to those that may be struck. A fault of links given a member means all links of that member.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/chaos/selector.hpp"
#include "actors/protocol/plan.hpp"

namespace troupe::actors::chaos {

// What is known of the world when a target is looked up.
struct world_view {
  protocol::plan plan;
  std::set<member_id> alive;                    // and running: not stopped, not ended
  std::vector<std::vector<member_id>> domains;  // lost together; empty: each alone
  std::optional<member_id> joiner;              // who is coming, or came last
  std::map<std::string, member_id> receivers;   // of the message at a fault's point
  std::set<std::pair<member_id, protocol::block_id>> unfinished;  // copies still on their way
};

struct link {
  member_id from, to;
  friend auto operator<=>(const link&, const link&) = default;
};

struct chosen {
  std::vector<member_id> members;  // sorted
  std::vector<link> links;         // sorted; only for selectors and kinds of links
  std::string nobody;              // why there is none, "" otherwise
};

using preference = std::function<bool(const std::vector<member_id>&)>;

// Members only. `draw` is any number; equal numbers choose equally. `prefer` may be empty.
chosen resolve_members(const selector& s, const world_view& world, std::uint64_t draw,
                       const preference& prefer);
// The same, and the links that this means.
chosen resolve_links(const selector& s, const world_view& world, std::uint64_t draw,
                     const preference& prefer);

}  // namespace troupe::actors::chaos
