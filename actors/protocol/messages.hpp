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
  bool without_parameters = false;  // ... but for the parameters of blocks that I do not hold
  friend bool operator==(const ready&, const ready&) = default;
};
// Coordinator to all who are ready: the first step may begin. These members have not the parameters
// of the plan's base, so the primaries send them first.
struct go {
  std::vector<member_id> without_parameters;  // sorted
  bool validate = false;                      // measure validation at the base
  friend bool operator==(const go&, const go&) = default;
};

// --- from a plan to the next ---

// What a member has of a block that it holds.
struct held_fact {
  block_id block;
  std::uint64_t version = 0;
  bool next_sum = false;  // it also holds the gradient sum of step version + 1, verified
  bool lost = false;      // an update of it failed half-way: it must never be used
  friend bool operator==(const held_fact&, const held_fact&) = default;
};
// Whoever collects to all: promise that plan `next` comes after plan `present`, and nothing of
// `present` is acted on any more. To one who comes anew, `present` says nothing.
struct collect {
  generation present, next;
  std::string why;
  friend bool operator==(const collect&, const collect&) = default;
};
// The answer: promised, and from now on this is what I have. A promise is to a number, not to the
// one who asked.
struct promise {
  generation next;
  bool of_plan = false;    // the sender has adopted the plan before `next`; else it comes anew
  std::uint64_t seen = 0;  // newest step whose record it has seen
  std::vector<record_notice> records;  // those it keeps, in order of their steps
  std::vector<held_fact> blocks;       // sorted by block
  friend bool operator==(const promise&, const promise&) = default;
};
// The answer of one who has promised more. Its newest plan comes before it, as a plan_notice.
struct promise_refused {
  generation asked, promised;
  friend bool operator==(const promise_refused&, const promise_refused&) = default;
};
// To the coordinator: I have noticed that this member is gone.
struct member_gone {
  member_id who;
  incarnation life;
  bool proven = false;  // its process does not exist any more
  std::string how;
  friend bool operator==(const member_gone&, const member_gone&) = default;
};
// Who copies which block to whom, while steps go on; from the coordinator to all.
struct copy_plan {
  struct copy {
    block_id block;
    member_id to;
    friend bool operator==(const copy&, const copy&) = default;
  };
  std::vector<copy> copies;
  friend bool operator==(const copy_plan&, const copy_plan&) = default;
};
// To the block's primary: I have room for a copy of it.
struct copy_wish {
  block_id block;
  friend bool operator==(const copy_wish&, const copy_wish&) = default;
};
// To the coordinator: all blocks that were to be copied to me are here and verified.
struct copies_held {
  friend bool operator==(const copies_held&, const copies_held&) = default;
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
  bool whole_run = false;  // ... and with it the whole run; else it alone is to leave
  bool drained = false;    // by a command of its launcher: never a reason to stop the run
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
                             stop_wish, farewell, address_table, collect, promise, promise_refused,
                             member_gone, copy_plan, copy_wish, copies_held>;

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

// A copy of a block's state at this version: parameters, first and second moments, end to end. From
// the primary to one who is to hold the block.
struct state_header {
  block_id block;
  std::uint64_t version = 0;
  hash128 hash;  // of the bytes
  friend bool operator==(const state_header&, const state_header&) = default;
};

using bulk_header = std::variant<node_header, sum_header, parameters_header, state_header>;

}  // namespace troupe::actors::protocol
