// The role that decides: collects votes, decides each step's record, knows what is stable, has it
// recorded, and ends the run in order, with validation and a save. There is one in every process;
// it is awake in the member that the plan names. Its monitor writes what is told to the outside.
//
//   gathering --all ready, and enough--> stepping --record with `last`--> ending --stable, written,
//   validated--> saving --all shares--> closing --records complete--> farewell
//
// With too few members it waits behind gathering, without a step, for a plan with more.
// A notice to stop makes the next record the last one; a step that takes longer than the patience
// is given up instead, and the version before it is saved.
#pragma once

#include <caf/all.hpp>
#include <functional>
#include <optional>

#include "actors/generation_context.hpp"
#include "actors/recorder.hpp"
#include "actors/run_store.hpp"

namespace troupe::actors {

struct coordinator_settings {
  std::uint64_t steps = 0;  // of the whole run
  double max_norm = 0;
  bool skip_nonfinite = true;
  std::uint64_t max_skipped_steps = 0;       // in a row
  std::uint64_t validation_freq = 0;         // steps; 0: none
  bool keep = true;                          // write checkpoints, else only hash
  std::function<float(std::uint64_t)> rate;  // learning rate of a step: pure
  // Asked when a step is decided, with its number: why this process was told to stop, or nothing.
  // So a notice that has come is obeyed by this very record.
  std::function<std::string(std::uint64_t)> asked_to_stop;
  std::chrono::nanoseconds patience = std::chrono::seconds(5);
};

// Outlives the coordinator.
struct coordinator_surroundings {
  coordinator_settings settings;
  run_store& store;
  recorder& records;
};

// What a coordinator begins a plan with.
struct coordinator_start {
  starting_point from;
  world_change how;                               // the world came to a later plan
  std::vector<protocol::copy_plan::copy> copies;  // to be made while steps go on
  std::string waits_for;  // more members, in words: no step is begun in this plan; "": for nobody
  std::optional<std::chrono::nanoseconds> waited;  // so long, until this plan
};

caf::actor spawn_coordinator(caf::event_based_actor* parent, shared_context around,
                             const coordinator_surroundings& surroundings,
                             const coordinator_start& start);

// To the coordinator: the next decision shall be this plan's last, because somebody waits to come
// in or to go.
struct change_wanted {};
// To the coordinator: these copies are needed before somebody can leave.
struct copies_wanted {
  std::vector<protocol::copy_plan::copy> copies;
};
// Its answer to the worker, once that decision is stable or all copies are there.
struct boundary_reached {
  generation of;
};

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::change_wanted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::copies_wanted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::boundary_reached)
