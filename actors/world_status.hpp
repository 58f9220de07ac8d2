// What people see of a world: one plain value, made by the loop's thread and never changed again,
// and its two forms: JSON for scripts (/api/status) and a table for people (`troupe status`).
// Times are wall-clock times, so that a reader sees how old the value itself is; nothing here
// decides anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/world_counters.hpp"
#include "config/base/clock.hpp"

namespace troupe::actors {

enum class run_state : std::uint8_t {
  starting,
  waiting,  // for members
  training,
  recovering,
  saving,
  stopping,
  finished
};
enum class member_state : std::uint8_t { active, joining, draining, spare, lost };
enum class memory_kind : std::uint8_t { parameters, optimizer, activations, other };

inline constexpr std::array<std::string_view, 7> run_state_names{
    "starting", "waiting", "training", "recovering", "saving", "stopping", "finished"};
inline constexpr std::array<std::string_view, 5> member_state_names{"active", "joining", "draining",
                                                                    "spare", "lost"};
inline constexpr std::array<std::string_view, 4> memory_kind_names{"parameters", "optimizer",
                                                                   "activations", "other"};
inline constexpr std::array<std::string_view, 6> phase_names{"starting",   "computing", "waiting",
                                                             "validating", "saving",    "ending"};
std::string_view name_of(run_state s);
std::string_view name_of(member_state s);
std::string_view name_of(protocol::phase p);

struct member_status {
  std::uint32_t id = 0;  // its slot
  incarnation life{};
  std::string name, host;
  member_state state = member_state::active;
  wall_time since{};                     // in this state
  std::optional<protocol::phase> phase;  // what it does, by its last heartbeat
  std::uint64_t step = 0;                // the step it is in, or the newest it has finished
  int threads = 0;
  std::optional<wall_time> heard;    // its last heartbeat
  std::optional<double> busy_ratio;  // own work over the time of its last steps, 0..1
  std::optional<double> slowdown;    // own work over the others', of the newest steps
  by<memory_kind, std::uint64_t, memory_kind_names.size()> memory_bytes;
  std::uint64_t restarts = 0;  // of its slot; never goes down
};

struct checkpoint_status {
  std::uint64_t step = 0, bytes = 0;
  wall_time published{};
};

struct world_status {
  std::string run, run_id, version, commit, backends;
  std::string model, config_digest;  // in a few words; 32 hex digits
  run_state state = run_state::starting;
  wall_time since{};  // in this state
  std::string note;   // what it waits for or why it stops, in words
  std::uint64_t generation = 0;
  std::string plan;                                     // one line
  std::uint64_t step = 0, steps = 0;                    // committed, of the whole run
  std::optional<double> loss, val_loss, grad_norm, lr;  // of the newest committed step
  double tokens_per_second = 0, step_seconds = 0;       // of the newest steps
  std::optional<double> utilization;                    // model FLOP/s over peak, 0..1
  double flops_per_token = 0;
  std::optional<wall_time> last_commit;
  double stall_seconds = 120;          // longer without a commit is not healthy
  std::vector<member_status> members;  // by id
  std::optional<checkpoint_status> checkpoint;
  world_counters counters;

  std::uint64_t members_in(member_state s) const;
};

std::string to_json(const world_status& s, wall_time now);
std::string to_text(const world_status& s, wall_time now);

// Is a commit recent enough? Ten steps may be missed before anybody is called, and stall_seconds in
// any case; before the first commit the time counts from when the run took up its present state.
bool healthy(const world_status& s, wall_time now);

}  // namespace troupe::actors
