// How often and how soon the process of one slot may be started again. What kills a process may
// kill the next one as well: the first start follows at once, each further one within the window
// after twice the pause, and when the budget of the window is spent the slot stays empty.
//
// Not chosen: a pause that shrinks again with every minute of good life. Starts that are older than
// the window are forgotten, which is the same with one number instead of two.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "config/base/clock.hpp"

namespace troupe::actors {

struct restart_rule {
  int limit = 10;  // within the window; 0: never, -1: no limit
  time_since_start window = std::chrono::seconds(600);
  time_since_start first_pause = std::chrono::milliseconds(200);  // before the second start
  time_since_start longest_pause = std::chrono::seconds(30);
};

class restart_budget {
 public:
  explicit restart_budget(const restart_rule& rule) : rule_(rule) {}

  // When the slot that is empty now is to be filled again, which is counted; nothing: never.
  // `calm` waits the first pause also before the first start.
  std::optional<time_since_start> take(time_since_start now, bool calm);
  std::size_t taken() const { return taken_.size(); }  // within the window, as of the last take()
  std::string words() const;  // "restart 3 of 10 within 600 s", for the one taken last

 private:
  restart_rule rule_;
  std::vector<time_since_start> taken_;  // when they are due
};

}  // namespace troupe::actors
