// Evens out loads by single moves from the fullest to the emptiest, until they differ by no more
// than `close_enough` or nothing can move. Who has nothing at all gets something even so, if
// somebody has more than one thing. Ends because a move must make the two loads more alike.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace troupe::actors::protocol {

// `may_receive(member)`; `move(from, to)` moves one thing, changes `loads` accordingly and says
// whether it found one.
template <class MayReceive, class Move>
void level_loads(const std::vector<std::uint64_t>& loads, std::uint64_t close_enough,
                 MayReceive may_receive, Move move) {
  // A member that could not receive is left alone for the rest of a round. What moved meanwhile may
  // have changed that, so only a round without a move is the end; then the same loads are level the
  // next time, too.
  for (bool moved_in_round = true; moved_in_round;) {
    moved_in_round = false;
    std::set<std::pair<std::uint64_t, std::uint32_t>> receivers, givers;
    for (std::uint32_t m = 0; m < loads.size(); ++m) {
      givers.insert({loads[m], m});
      if (may_receive(m)) receivers.insert({loads[m], m});
    }
    while (!receivers.empty()) {
      const auto [least, to] = *receivers.begin();
      const std::uint64_t enough = least == 0 ? 0 : least + close_enough;
      bool moved = false;
      for (auto giver = givers.rbegin(); giver != givers.rend(); ++giver) {
        const auto [most, from] = *giver;
        if (most <= enough) break;
        if (from == to || !move(from, to)) continue;
        moved = true;
        for (auto* set : {&receivers, &givers}) {
          if (set->erase({most, from}) > 0) set->insert({loads[from], from});
          if (set->erase({least, to}) > 0) set->insert({loads[to], to});
        }
        break;
      }
      if (!moved) receivers.erase({least, to});
      moved_in_round |= moved;
    }
  }
}

}  // namespace troupe::actors::protocol
