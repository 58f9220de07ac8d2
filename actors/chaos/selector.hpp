// Whom a fault strikes, as a scenario names it, and who that is now. "coordinator" or "backup:7" is
// somebody else after every plan, so a target is looked up when its fault is due and not before.
//
//   m2  domain:1  coordinator  primary:7  backup:7  holder:7  layer:5  joiner  any  all
//   any-not:TARGET  receiver:FAULT  link:m0>m2  pair:m0-m2  side:m0,m1
//
// Blocks are counted through the whole model from 0, layers from 0. Where several members fit
// (any, holder, backup, layer) one is drawn; `prefer` lets the drawer keep to those that may be
// struck. A fault of links given a member means all links of that member.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actors/protocol/plan.hpp"
#include "config/base/error.hpp"

namespace troupe::actors::chaos {

struct selector {
  enum class kind : std::uint8_t {
    member,
    domain,
    coordinator,
    primary,
    backup,
    holder,
    layer,
    joiner,
    receiver,
    link,
    pair,
    side,
    any,
    any_not,
    all,
  };
  kind what = kind::any;
  std::uint32_t number = 0;        // of a domain, block or layer
  std::vector<member_id> members;  // of member, link (from, to), pair, side
  std::string fault;               // of receiver
  std::vector<selector> excepted;  // of any_not: one
  friend bool operator==(const selector&, const selector&) = default;

  bool names_links() const {
    return what == kind::link || what == kind::pair || what == kind::side;
  }
};

// The error's message says what is wrong with the text and names the nearest word.
result<selector> parse_selector(std::string_view text);
std::string to_text(const selector& s);

// All members that a selector names by number, also inside any-not.
std::vector<member_id> named_members(const selector& s);

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
