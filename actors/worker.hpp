// The root of a process's actors: meets the other members, adopts the plan, starts and supervises
// the actors that do the work, notices who is lost, and ends the process's part of the run, once,
// with one reason.
//
//   meeting --plan published (convener) or heard of--> adopting --linked, connected, state here-->
//   working --farewell, loss or failure--> ending --everything said, or half a second--> ended
//
// Before plan 0 one member convenes: it listens, waits for the others and publishes the plan. With
// a launcher that is slot 0.
#pragma once

#include <caf/all.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "actors/coordinator.hpp"
#include "actors/introductions.hpp"
#include "actors/protocol/planner.hpp"
#include "actors/run_store.hpp"
#include "comm/transport.hpp"

namespace troupe::actors {

struct worker_settings {
  comm::facts me;  // what this member says of itself
  bool convenes = false;
  bool joins = false;          // comes to a world that is under way
  std::uint32_t expected = 1;  // members that the convener waits for
  member_id convener;
  std::uint32_t virtual_ranks = 1, backups = 1;
  // So long whoever comes may take to link to the others before the change for its sake; others who
  // come meanwhile enter with it.
  std::chrono::nanoseconds link_first{};
  std::uint32_t min_members = 1;  // with fewer that compute no step is begun
  protocol::spare_policy spares = protocol::spare_policy::backups;
  std::chrono::nanoseconds heartbeat = std::chrono::milliseconds(100);
  std::chrono::nanoseconds suspect = std::chrono::milliseconds(1000);
  std::chrono::nanoseconds evict = std::chrono::milliseconds(3000);
  std::chrono::nanoseconds wait_for_members = std::chrono::seconds(600);
  std::chrono::nanoseconds wait_for_convener = std::chrono::seconds(300);
  std::function<std::uint64_t()> peak_memory;  // of this process [bytes], to be told; may be empty
};

// How the process's part ended.
struct ending {
  exit_code code = exit_code::defect;
  std::string why;       // in words; empty for an ordinary end
  bool our_own = false;  // the cause lies here, so this process tells it
};

// What the worker needs; all of it outlives the loop.
struct worker_surroundings {
  worker_settings settings;
  comm::transport& transport;
  introductions& gate;
  computation& work;
  protocol_points& points;
  const clock_source& clock;
  coordinator_surroundings coordination;
  std::function<void(const ending&)> ended;
  // What the worker makes for its actors, which may still run when it is gone.
  std::vector<std::shared_ptr<void>>& kept;
};

caf::actor spawn_worker(caf::actor_system& system, const worker_surroundings& around);

// To the worker: this process was asked to stop.
struct stop_asked {
  std::string why;
  bool whole_run = true;  // false: this member alone is to leave
  bool drained = false;   // by a command: it leaves by a plan, ends with 0, and never stops the run
};

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::stop_asked)
