// What `troupe scale` and `troupe drain` mean for the slots of a launcher: which processes are
// started, which are told to leave, and what the person is answered. A pure function of how the
// slots stand; the launcher carries it out before it answers, so what was answered with yes is
// under way.
//
// A slot is *wanted* or not, whatever its process does at the moment. That makes a second order
// while the first is under way nothing special: one who is leaving and is wanted again is followed
// by a new process once it has gone, since a leaver has given away what it held. Not chosen: taking
// the order back; it would arrive before the plan, with it or after it, and each of the three would
// end in another way.
//
// Surplus workers leave from the highest slot down, but the one that coordinates comes last: its
// role need not move, and the world stands still for a shorter time. Slots are filled from the
// lowest up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/base/error.hpp"

namespace troupe::actors {

struct slot_now {
  std::string name;  // "worker-3"
  bool wanted = true;
  bool running = true;   // it has a process
  bool leaving = false;  // that was told to leave alone
  bool waits = false;    // for its restart
  bool coordinates = false;
};

struct scale_wish {
  std::uint64_t workers = 0;
};
struct drain_wish {
  std::string name;
};
using world_wish = std::variant<scale_wish, drain_wish>;
// "scale 4" and "drain worker-3"; nothing: it is none.
std::optional<world_wish> parse_wish(const std::string& words);
std::string to_text(const world_wish& wish);

struct size_limits {
  std::uint64_t min_members = 1;      // elastic.min_members
  std::uint64_t max_members = 65535;  // elastic.max_members
};

struct world_order {
  exit_code code = exit_code::ok;  // ok: taken on
  std::string words;               // for whoever asked
  std::uint64_t from = 0, to = 0;  // wanted workers, before and after
  std::vector<std::size_t> start;  // slots that are wanted again or still
  std::size_t add = 0;             // new slots behind the last one
  std::vector<std::size_t> leave;  // in this order
};

// `stopping`: the run is ending or was told to.
world_order order_for(const world_wish& wish, const std::vector<slot_now>& slots,
                      const size_limits& limits, bool stopping);

}  // namespace troupe::actors
