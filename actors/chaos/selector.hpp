// Whom a fault strikes, as a scenario names it:
//
//   m2  domain:1  coordinator  primary:7  backup:7  holder:7  layer:5  joiner  any  all
//   any-not:TARGET  receiver:FAULT  link:m0>m2  pair:m0-m2  side:m0,m1
//
// Blocks are counted through the whole model from 0, layers from 0. Who that is at a given moment
// is found by target_lookup.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/ids.hpp"

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

}  // namespace troupe::actors::chaos
