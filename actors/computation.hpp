// What the actors of one member ask of its device: the computation of a step, and the arithmetic on
// the blocks that it holds. Behind it is either the model on an executor  or toy
// arithmetic in virtual time in sim; the actors are the same over both.
//
// All calls come from the loop's thread, and none of them blocks. Completions are called on the
// loop's thread, later, never from within the call. A completion gets what went wrong, or nothing.
//
// A *source* is one of the gradients that a block sums: number 0 is the layer's own, number 1 the
// head's gradient of a tied token table, which covers a part of the embedding's blocks. Each source
// has its own tree over the virtual ranks; the primary adds the sources at the end.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/protocol/decision.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/plan.hpp"
#include "config/base/hash.hpp"

namespace troupe::actors {

using protocol::block_id;
using protocol::leaf_loss;
using protocol::node_key;

// Sizes of what is trained; the same on every member.
struct block_shape {
  std::uint32_t elements = 0;
  // Elements of each source, in order; one or two of them. The second lies at `tied_offset` in the
  // block.
  std::vector<std::uint32_t> sources;
  std::uint32_t tied_offset = 0;
};
struct world_shape {
  std::vector<std::vector<block_shape>> layers;
  std::vector<std::uint32_t> blocks_of_layers() const;  // how many blocks each layer has
  std::vector<std::vector<std::uint32_t>> elements_of_blocks() const;  // by layer, as plans want it
  bool has(block_id block) const;
};

// What one member does in a plan.
struct member_share {
  std::uint32_t virtual_ranks = 0;           // of the whole world
  std::uint32_t first_leaf = 0, leaves = 0;  // it computes; none: a spare
  std::vector<block_id> primary, backup;     // it holds; sorted
};

struct sum_facts {
  hash128 hash;        // xxh3-128 of the gradient sum's bytes
  double squares = 0;  // sum of squares; not finite if any element is not
};

struct block_hashes {
  hash128 weights, state;  // as in model/checkpoint/state_hash.hpp
};

// Where a block's state lies on the host; empty spans where this member does not hold it.
struct block_memory {
  std::span<float> parameters, first_moments, second_moments;
};

// Seconds of device and data work since the last call.
struct work_seconds {
  double data = 0, forward = 0, backward = 0, reduce = 0, apply = 0;
};

class computation {
 public:
  using trouble = std::exception_ptr;  // nothing if all went well
  using completion = std::function<void(trouble)>;
  template <class T>
  using answer = std::function<void(trouble, T)>;

  struct step_events {
    // Of what this member computes at once; may be empty.
    std::function<void()> micro_batch_done;
    // All nodes that this member completes of one source of one layer are there.
    std::function<void(std::uint32_t layer, std::uint8_t source)> nodes_ready;
    // After the last nodes_ready.
    answer<std::vector<leaf_loss>> finished;
  };

  virtual ~computation() = default;
  virtual const world_shape& shape() const = 0;

  // Takes a share: memory for its blocks, its nodes and its slots. Before anything below.
  virtual void adopt(const member_share& share) = 0;
  // Version 0 from the seed: parameters of the whole model, moments of the held blocks.
  virtual void initialize(completion done) = 0;

  // --- one step, numbered from 1 ---
  // Fetches the step's samples of this member's virtual ranks; also while a step is computed.
  virtual void load(std::uint64_t step, completion done) = 0;
  // Begins a loaded step; nothing of a layer runs before open(layer). The nodes of the step before
  // end here. `events` is for this step only.
  virtual void start(std::uint64_t step, step_events events) = 0;
  // The layer's parameters are at version step - 1 on this member.
  virtual void open(std::uint32_t layer) = 0;
  // Ends the step that is being computed as soon as possible; `finished` then brings an exception.
  virtual void cancel() = 0;
  // A completed node of this member, valid until the next start().
  virtual std::span<const std::byte> node(const node_key& key) const = 0;

  // --- held blocks ---
  // slot(), sum() and parameters() are asked on behalf of other processes: whatever they name, an
  // empty span says that this member has no such place, and takes no memory.
  // Primary: where another rank's node goes. Valid for one step.
  virtual std::span<std::byte> slot(const node_key& key) = 0;
  // Primary: completes the tree of every source from slots and own nodes, adds the sources.
  virtual void reduce(block_id block, std::uint64_t step, answer<sum_facts> done) = 0;
  // The gradient sum of a step. Two steps' sums exist at a time, so that one can arrive while the
  // one before is applied.
  virtual std::span<std::byte> sum(block_id block, std::uint64_t step) = 0;
  // Backup: the hash of a sum that has arrived.
  virtual void hash_sum(block_id block, std::uint64_t step, answer<hash128> done) = 0;
  // AdamW with the step's sum; a skipped step changes nothing but is called all the same.
  virtual void apply(block_id block, const protocol::decision_record& record, completion done) = 0;
  // Any block of a model that this member computes or holds: for sending and for arrivals.
  virtual std::span<std::byte> parameters(block_id block) = 0;
  virtual void hash_state(block_id block, answer<block_hashes> done) = 0;
  virtual block_memory memory(block_id block) = 0;

  // --- copies of blocks, from a primary to one who is to hold them ---
  // Bytes of a block's state: parameters, first and second moments, end to end. Of any block.
  std::size_t state_bytes(block_id block) const {
    return shape().layers.at(block.layer).at(block.block).elements * 3 * sizeof(float);
  }
  struct state_copy {
    std::shared_ptr<const std::vector<std::byte>> bytes;
    hash128 hash;  // xxh3-128 of them
  };
  // A copy of a held block's state as it is when its turn among the protocol's jobs comes.
  virtual void copy_state(block_id block, answer<state_copy> done) = 0;
  // Memory for a block that is not held yet; its state is nothing until take_state().
  virtual void make_room(block_id block) = 0;
  // Checks the bytes against their hash and makes them the block's state. The trouble of bytes that
  // do not fit their hash is a std::runtime_error that says so. Where this member computes, its
  // parameters are left alone: they came, or come, for the step itself.
  virtual void take_state(block_id block, std::shared_ptr<const std::vector<std::byte>> bytes,
                          const hash128& hash, completion done) = 0;

  // --- validation on the present parameters, outside of a step ---
  // Losses of this member's virtual ranks' shares of the validation windows.
  virtual void evaluate(answer<std::vector<leaf_loss>> done) = 0;

  virtual work_seconds take_seconds() = 0;
  virtual std::string numerics_class() const = 0;
  virtual std::uint64_t activation_bytes() const = 0;
};

}  // namespace troupe::actors
