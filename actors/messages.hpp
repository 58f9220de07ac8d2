// What the actors of one process say to each other. They stay in the process, so CAF never writes
// them to bytes; what goes to other members is a protocol::message, wrapped in `incoming` where it
// arrives.
#pragma once

#include <caf/all.hpp>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/computation.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol_points.hpp"
#include "comm/transport.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {

// A message of another member, or of this one to itself.
struct incoming {
  member_id from;
  protocol::message what;
};

// To the worker: for a member that this one has had nothing to say to in this plan.
struct to_be_linked {
  member_id to;
  protocol::message what;
};

// To a peer: for the member it stands for.
struct outgoing {
  protocol::message what;
  std::optional<sent_mark> mark = {};  // told once it is out
};

// --- rank <-> stage, data_loader ---
struct load_step {
  std::uint64_t step;
};
struct step_loaded {
  std::uint64_t step;
};
struct compute_step {
  std::uint64_t step;
  std::vector<std::uint32_t> open;  // layers that may be computed at once
};
struct open_layer {
  std::uint32_t layer;
};
struct cancel_step {};
struct step_computed {
  std::uint64_t step;
  std::vector<protocol::leaf_loss> losses;
};

// --- to an optimizer shard ---
struct local_node {  // a node that this member completed itself
  std::uint64_t step;
  protocol::node_key key;
};
struct node_arrived {
  protocol::node_header header;
};
struct sum_arrived {
  protocol::sum_header header;
};
struct step_decided {
  protocol::record_notice notice;
};
struct state_arrived {  // a copy of a block's state
  protocol::state_header header;
  std::shared_ptr<const comm::bytes> bytes;
};
struct state_taken {  // the device has it
  protocol::block_id block;
  std::uint64_t version;
};
struct state_copied {  // of a primary: a copy of its block's state, to be sent
  protocol::block_id block;
  member_id to;
  std::uint64_t version;
  hash128 hash;
  std::shared_ptr<const comm::bytes> bytes;
};
struct give_parameters {  // to these members, which have none at this plan's base
  std::vector<member_id> to;
  protocol::record_notice base;
};
struct take_copies {  // of these blocks, one after another, from their primaries
  std::vector<protocol::block_id> blocks;
};

// --- shard -> rank ---
struct block_ready {  // of a primary: all backups hold the sum
  std::uint64_t step;
  protocol::block_sum sum;
};
struct block_applied {
  protocol::block_id block;
  std::uint64_t version;
  bool of_plan;  // the plan lists this member as its holder; else it is a copy that keeps up
};
struct copies_taken {};  // all copies of one layer are here

// --- bulk lane -> rank ---
struct parameters_arrived {
  protocol::parameters_header header;
};
struct nodes_sent {};  // no node of the step is on its way any more

// --- completions of the computation: they come back as messages, so that an actor's state changes
// in its handlers only ---
struct nodes_complete {
  std::uint64_t step;
  std::uint32_t layer;
  std::uint8_t source;
};
struct micro_batch_complete {
  std::uint64_t step;
};
struct sum_reduced {
  std::uint64_t step;
  protocol::block_sum sum;
};
struct sum_hashed {
  std::uint64_t step;
  protocol::block_id block;
  hash128 hash;
};
struct block_updated {
  std::uint64_t step;
  protocol::block_id block;
};
struct validation_measured {
  std::uint64_t step;
  std::vector<protocol::leaf_loss> losses;
};

// Whoever gets it ends its part of the run.
struct job_failed {
  error why;
};

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::incoming)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::to_be_linked)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::load_step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::step_loaded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::compute_step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::open_layer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::cancel_step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::step_computed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::local_node)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::node_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::sum_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::step_decided)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::block_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::block_applied)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::state_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::state_taken)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::state_copied)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::give_parameters)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::take_copies)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::copies_taken)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::parameters_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::nodes_sent)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::job_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::nodes_complete)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::micro_batch_complete)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::sum_reduced)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::sum_hashed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::block_updated)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::validation_measured)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::outgoing)
