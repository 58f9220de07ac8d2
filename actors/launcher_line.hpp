// What a launcher tells one of its workers besides signals: orders with words, over a pair of
// connected sockets of which the worker inherits one end. An order is one packet, so none is torn
// or runs into another, and one that comes before the worker listens waits for it.
//
// Not chosen: signals with a value. They are lost where the process does not catch them yet, two of
// a kind become one, and a batch system sends the same kinds.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "config/base/clock.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {

// This worker is to leave the world, and to end with 0.
struct leave_order {
  std::string why;  // "the world is scaled to 2 workers"
  friend bool operator==(const leave_order&, const leave_order&) = default;
};
// To all, for the records: what a person asked for.
struct world_note {
  std::string asked;  // "scale 2"
  std::uint64_t from = 0, to = 0;
  friend bool operator==(const world_note&, const world_note&) = default;
};
using launcher_order = std::variant<leave_order, world_note>;

std::string print_order(const launcher_order& order);
std::optional<launcher_order> parse_order(const std::string& text);

// A launcher's end and the one that its worker inherits.
struct line_ends {
  int ours = -1, theirs = -1;
};
result<line_ends> open_launcher_line();
// False: not now.
bool tell_worker(int fd, const launcher_order& order);

// A worker's end.
class launcher_line {
 public:
  // -1: nobody will say anything.
  launcher_line(int fd, const clock_source& clock) : fd_(fd), clock_(&clock) {}

  // Asked as often as anybody likes: the system is asked now and then.
  std::optional<launcher_order> next();

 private:
  int fd_;
  const clock_source* clock_;
  time_since_start next_look_{};
};

}  // namespace troupe::actors
