// What members say to each other about steps and plans, as values. Messages of the control lane
// are the alternatives of `message`; headers of the bulk lane those of `bulk_header`, one in front
// of every payload. Run, plan and incarnation stand on the envelope around them (comm/wire).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "actors/protocol/decision.hpp"
#include "actors/protocol/plan.hpp"
#include "config/base/hash.hpp"

namespace troupe::actors::protocol {

// What one virtual rank's sequences lost.
struct leaf_loss {
  std::uint32_t leaf = 0;
  double loss_sum = 0;  // nats, over counted target tokens
  double tokens = 0;    // counted target tokens
  friend bool operator==(const leaf_loss&, const leaf_loss&) = default;
};

// A node of one source's tree, cut to one block. Source 0 is the layer's own gradient, 1 the head's
// gradient of a tied token table.
struct node_key {
  block_id block;
  std::uint8_t source = 0;
  tree_node node;
  friend auto operator<=>(const node_key&, const node_key&) = default;
};

struct block_sum {
  block_id block;
  hash128 hash;        // of the gradient sum's bytes
  double squares = 0;  // sum of squares of the gradient sum
  friend bool operator==(const block_sum&, const block_sum&) = default;
};

// --- starting ---

// Coordinator to all: the plan's text; it stands in the chain already.
struct plan_notice {
  std::string text;
  friend bool operator==(const plan_notice&, const plan_notice&) = default;
};
// To the coordinator: my bulk lane of this plan listens here.
struct bulk_address {
  std::vector<std::byte> where;
  friend bool operator==(const bulk_address&, const bulk_address&) = default;
};
// Coordinator to all: where everybody's bulk lane listens. Members need no link to those that they
// exchange only gradients and parameters with, so a wide world has few of them.
struct member_address {
  member_id member;
  std::vector<std::byte> where;
  friend bool operator==(const member_address&, const member_address&) = default;
};
struct address_table {
  std::vector<member_address> addresses;
  friend bool operator==(const address_table&, const address_table&) = default;
};
// To the coordinator: I am connected to whom I need, and my state is at the plan's base.
struct ready {
  friend bool operator==(const ready&, const ready&) = default;
};
// Coordinator to all who are ready: the first step may begin.
struct go {
  friend bool operator==(const go&, const go&) = default;
};

// --- a step ---

// Backup to primary: the sum is in my memory, and this is the hash of what I have.
struct sum_held {
  std::uint64_t step = 0;
  block_id block;
  hash128 hash;
  friend bool operator==(const sum_held&, const sum_held&) = default;
};

// Where a member's time went in a step [s], and what it sent [bytes] since it started; for people.
struct step_facts {
  double data = 0, forward = 0, backward = 0, reduce = 0, apply = 0, wait = 0;
  std::uint64_t control_bytes = 0, bulk_bytes = 0, peak_memory = 0, activation_bytes = 0;
  friend bool operator==(const step_facts&, const step_facts&) = default;
};

// To the coordinator, once a step: all backups hold the sums of the blocks that I am primary of,
// and this is what my virtual ranks lost.
struct vote {
  std::uint64_t step = 0;
  std::vector<block_sum> sums;    // sorted by block
  std::vector<leaf_loss> losses;  // sorted by leaf
  step_facts facts;
  friend bool operator==(const vote&, const vote&) = default;
};

// Coordinator to all: the decision. Seeing it, in whatever message, is what makes a holder apply.
struct record_notice {
  decision_record record;
  bool last = false;        // no step follows in this plan
  bool validate = false;    // measure validation at this version
  std::uint64_t lines = 0;  // steps whose lines are known to be written
  friend bool operator==(const record_notice&, const record_notice&) = default;
};

// To the coordinator: I have seen the record of this step.
struct recorded {
  std::uint64_t step = 0;
  friend bool operator==(const recorded&, const recorded&) = default;
};

struct validation_share {
  std::uint64_t step = 0;
  std::vector<leaf_loss> losses;
  friend bool operator==(const validation_share&, const validation_share&) = default;
};

// --- saving ---

// Coordinator to all: write your blocks of this version; the folder is prepared.
struct save_request {
  std::uint64_t step = 0;
  std::string folder;
  friend bool operator==(const save_request&, const save_request&) = default;
};
struct saved_block {
  block_id block;
  hash128 weights, state;                             // state_hash.hpp's
  hash128 parameters, first_moments, second_moments;  // of the bytes in the files
  friend bool operator==(const saved_block&, const saved_block&) = default;
};
struct save_share {
  std::uint64_t step = 0;
  std::vector<saved_block> blocks;
  int failure = 0;            // exit code, 0 if all was written
  std::string message;        // of the failure
  std::string not_finite_in;  // a layer with a parameter that is no finite number; "": none
  friend bool operator==(const save_share&, const save_share&) = default;
};

// --- living and ending ---

// What a member is doing, for whoever watches it.
enum class phase : std::uint8_t { starting, computing, waiting, validating, saving, ending };
struct heartbeat {
  std::uint64_t step = 0;
  phase doing = phase::starting;
  friend bool operator==(const heartbeat&, const heartbeat&) = default;
};
// To the coordinator: this member was asked to stop.
struct stop_wish {
  std::string why;
  friend bool operator==(const stop_wish&, const stop_wish&) = default;
};
// To all: the run ends here, with this exit code, for this first cause. After it the sender closes
// its links, and nobody takes that for a loss.
struct farewell {
  int code = 0;
  std::string why;
  friend bool operator==(const farewell&, const farewell&) = default;
};

using message = std::variant<plan_notice, bulk_address, ready, go, sum_held, vote, record_notice,
                             recorded, validation_share, save_request, save_share, heartbeat,
                             stop_wish, farewell, address_table>;

// --- bulk headers; the plan is the lane's ---

// A completed tree node, to the block's primary.
struct node_header {
  std::uint64_t step = 0;
  node_key key;
  friend bool operator==(const node_header&, const node_header&) = default;
};
// A gradient sum, from the primary to its backups.
struct sum_header {
  std::uint64_t step = 0;
  block_id block;
  hash128 hash;
  friend bool operator==(const sum_header&, const sum_header&) = default;
};
// A block's parameters at version record.step, from the primary to the ranks; it carries the
// record, so that whoever has the parameters has seen the decision.
struct parameters_header {
  block_id block;
  record_notice decided;
  friend bool operator==(const parameters_header&, const parameters_header&) = default;
};

using bulk_header = std::variant<node_header, sum_header, parameters_header>;

}  // namespace troupe::actors::protocol
