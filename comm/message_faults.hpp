// What becomes of messages on their way while something is wrong with it: rules, and for each
// message its fate. Pure; filtered_transport does what is decided here, on real lanes and on
// simulated ones alike.
//
// A rule speaks of what one process sends: of a link from m0 to m2 only m0 can spoil anything, and
// a cut in both directions is two rules in two processes. Every draw comes from the rule's seed and
// the how-manieth message it is asked about.
//
// Bulk messages are neither lost, nor repeated, nor brought back from an older plan here: the
// fabric below is reliable, an end of a link is reported, and each plan has a lane of its own. What
// can happen to them is that they wait (cut, delay, reorder) and that bits change (corrupt).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/ids.hpp"

namespace troupe::comm {

enum class message_fault : std::uint8_t { cut, drop, delay, dup, reorder, replay, corrupt };
enum class message_plane : std::uint8_t { control, bulk };

// Can it happen on the plane at all?
bool is_possible(message_fault what, message_plane plane);

struct message_rule {
  std::uint64_t id = 0;
  message_fault what = message_fault::cut;
  std::vector<member_id> to;                // none: everybody, also who has not said its name
  std::optional<message_plane> plane;       // nothing: all on which it is possible
  std::string message;                      // only those of this name; "": all
  double share = 1;                         // of the messages, by chance
  std::optional<std::uint64_t> messages;    // at most so many
  std::chrono::nanoseconds by{20'000'000};  // delay and reorder: so much later ...
  std::chrono::nanoseconds jitter{};        // ... and up to this more
  std::uint32_t bits = 1;                   // corrupt: how many are flipped
  std::uint64_t seed = 0;
};

struct message_fate {
  bool cut = false;  // waits until nothing cuts its way
  bool lost = false;
  bool again = false;                  // comes twice
  bool replay = false;                 // one of an older plan comes before it
  std::chrono::nanoseconds late{};     // waits so long ...
  bool overtaken = false;              // ... and those behind it do not
  std::vector<std::uint64_t> flipped;  // numbers of bits
};

class message_faults {
 public:
  void begin(message_rule rule);
  bool end(std::uint64_t id);  // false: there is no such rule (any more)

  bool idle() const { return rules_.empty(); }
  bool asks_for_names() const;
  bool cuts(message_plane plane, std::optional<member_id> to) const;
  // `to`: nothing while it is not known. `name` says something only if asks_for_names().
  message_fate decide(message_plane plane, std::optional<member_id> to, std::string_view name,
                      std::size_t bytes);
  // A replay was wanted and there was nothing of an older plan: it did not strike.
  void nothing_to_replay(std::optional<member_id> to);
  // How many messages it has struck, also after its end.
  std::uint64_t struck(std::uint64_t id) const;

 private:
  struct kept_rule {
    message_rule rule;
    std::uint64_t drawn = 0;
  };
  static bool concerns(const message_rule& r, message_plane plane, std::optional<member_id> to);

  std::vector<kept_rule> rules_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> struck_;  // by id
};

// Changes these bits.
void flip(std::vector<std::byte>& of, const std::vector<std::uint64_t>& bits);

}  // namespace troupe::comm
