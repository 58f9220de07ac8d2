// What only grows while a process lives, and how it is spread: the material of /metrics. Owned by
// the loop's thread and copied out with each snapshot. All start at 0 with the process; a resume
// starts a new process, and whoever reads them takes differences, as Prometheus does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::actors {

enum class step_phase : std::uint8_t { data, forward, backward, reduce, commit, apply, wait };
enum class lane : std::uint8_t { control, bulk, collective };
enum class checkpoint_part : std::uint8_t { snapshot, write };
// Why a plan replaced another one, and how it was noticed that a member was lost.
enum class change_cause : std::uint8_t { lost, joined, drained, straggler, rollback };
enum class loss_kind : std::uint8_t { exit, endpoint, heartbeat, stall, corrupt };

inline constexpr std::array<std::string_view, 7> step_phase_names{
    "data", "forward", "backward", "reduce", "commit", "apply", "wait"};
inline constexpr std::array<std::string_view, 3> lane_names{"control", "bulk", "collective"};
inline constexpr std::array<std::string_view, 2> checkpoint_part_names{"snapshot", "write"};
inline constexpr std::array<std::string_view, 5> change_cause_names{"lost", "joined", "drained",
                                                                    "straggler", "rollback"};
inline constexpr std::array<std::string_view, 5> loss_kind_names{"exit", "endpoint", "heartbeat",
                                                                 "stall", "corrupt"};
// From the words in which it was noticed. They are for people and may change; what is not known is
// a broken link, which all losses end in.
loss_kind loss_kind_of(std::string_view how);
std::string_view name_of(loss_kind k);

// One value for each enumerator.
template <class Enum, class Value, std::size_t Count>
struct by {
  std::array<Value, Count> values{};
  Value& operator[](Enum e) { return values[static_cast<std::size_t>(e)]; }
  const Value& operator[](Enum e) const { return values[static_cast<std::size_t>(e)]; }
};
template <class Value>
using by_phase = by<step_phase, Value, step_phase_names.size()>;
template <class Value>
using by_lane = by<lane, Value, lane_names.size()>;
template <class Value>
using by_checkpoint_part = by<checkpoint_part, Value, checkpoint_part_names.size()>;
template <class Value>
using by_cause = by<change_cause, Value, change_cause_names.size()>;
template <class Value>
using by_loss = by<loss_kind, Value, loss_kind_names.size()>;

// Durations in buckets of fixed bounds, each about twice the one before.
class histogram {
 public:
  static constexpr std::array<double, 14> bounds{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1,
                                                 2,    5,    10,   20,  50,  100, 300};
  void add(double seconds);
  // How many were at most bounds[i].
  std::uint64_t up_to(std::size_t i) const;
  std::uint64_t count() const;
  double sum() const { return sum_; }

 private:
  std::array<std::uint64_t, bounds.size() + 1> counts_{};  // the last one: above all bounds
  double sum_ = 0;
};

struct world_counters {
  std::uint64_t steps = 0;   // committed, skipped ones among them
  std::uint64_t tokens = 0;  // counted targets of committed steps
  std::uint64_t skipped_steps = 0;
  std::uint64_t redone_steps = 0;
  by_cause<std::uint64_t> generations;  // that replaced another one
  by_loss<std::uint64_t> losses;        // of members
  histogram recovery_seconds, unblock_seconds;
  histogram step_seconds;
  by_phase<double> phase_seconds;
  by_lane<std::uint64_t> sent_bytes;
  std::uint64_t checkpoint_attempts = 0, checkpoint_failures = 0;
  by_checkpoint_part<histogram> checkpoint_seconds;
};

}  // namespace troupe::actors
