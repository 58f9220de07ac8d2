// The blocks that a member holds: their parameters, moments, slots and gradient sums, and the
// arithmetic on them.
//
// Who owns what: parameters lie in the whole model of a member that computes, else in memory of
// their own; moments only for held blocks. Two gradient sums exist a block, by the step's parity.
// All bookkeeping is done on the loop's thread, when a call comes in; jobs get views of memory that
// they keep alive, so that a share can be replaced while jobs of the share before still run.
//
// A member that computes all virtual ranks has the sum already, as the root of its own tree: then
// sum() is that memory, and it is valid until the layer is computed again in the next step, which
// is after the block's update. Not chosen: a copy for the sake of one rule, since it would cost a
// lone worker a pass over the gradient and its memory.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "actors/computation.hpp"
#include "actors/protocol_jobs.hpp"
#include "model/model_state.hpp"
#include "model/optimizer.hpp"
#include "model/training_pass.hpp"

namespace troupe::actors {

// The part of a member that computes; both empty on a spare.
struct computing_part {
  std::shared_ptr<model::model_state> state;  // parameters of the whole model
  std::shared_ptr<model::training_pass> pass;
};

class held_blocks {
 public:
  // All outlive the object; `seconds` gets the time of jobs.
  held_blocks(const model::network& net, const world_shape& shape,
              const model::adamw_settings& settings, protocol_jobs jobs, work_seconds& seconds);

  // Blocks that were held before keep their state and their sums.
  void adopt(const member_share& share, const computing_part& part);

  // A node that this member has computed, cut to its block.
  compute::view own_node(const node_key& key) const;

  // As in computation.hpp.
  std::span<std::byte> slot(const node_key& key);
  void reduce(block_id block, std::uint64_t step, computation::answer<sum_facts> done);
  std::span<std::byte> sum(block_id block, std::uint64_t step);
  void hash_sum(block_id block, std::uint64_t step, computation::answer<hash128> done);
  void apply(block_id block, const protocol::decision_record& record, computation::completion done);
  std::span<std::byte> parameters(block_id block);
  void hash_state(block_id block, computation::answer<block_hashes> done);
  block_memory memory(block_id block);

  void copy_state(block_id block, computation::answer<computation::state_copy> done);
  void make_room(block_id block);
  void take_state(block_id block, std::shared_ptr<const std::vector<std::byte>> bytes,
                  const hash128& hash, computation::completion done);

  struct first_values {
    block_id block;
    compute::view parameters;
    std::shared_ptr<void> keep;
  };
  // Clears the moments of all blocks; gives the blocks whose parameters lie here.
  std::vector<first_values> begin_again();

 private:
  struct arrival {
    compute::buffer values;
    bool asked_for = false;  // since the last reduction: else it holds an earlier step's node
  };
  struct slots {
    std::map<std::pair<std::uint8_t, tree_node>, arrival> filled;
    std::vector<compute::buffer> idle;
  };
  struct gradient_sum {
    compute::buffer own;
    compute::view alias;     // else the sum lies in `own`
    std::uint64_t step = 0;  // 0: none yet
  };
  struct held {
    compute::view parameters;
    compute::buffer own_parameters;             // on a spare
    std::shared_ptr<model::model_state> state;  // else
    compute::buffer first_moment, second_moment, squares;
    std::array<gradient_sum, 2> sums;  // by parity
    std::shared_ptr<slots> arrivals;
    std::size_t reductions = 0;  // in flight
    bool primary = false;
  };
  using held_ptr = std::shared_ptr<held>;

  const held_ptr& at(block_id block) const;
  const block_shape& shape_of(block_id block) const {
    return shape_.layers.at(block.layer).at(block.block);
  }
  compute::view model_part(model::model_state& state, block_id block) const;
  held_ptr take_over(block_id block, bool primary, const computing_part& part);
  void place_parameters(const held_ptr& h, block_id block, const computing_part& part);
  void keep_sums(const held_ptr& h, const computing_part& part);
  compute::view where(gradient_sum& sum, block_id block);
  tree_node whole() const { return {0, virtual_ranks_}; }

  const model::network& net_;
  const world_shape& shape_;
  model::adamw_settings settings_;
  protocol_jobs jobs_;
  work_seconds& seconds_;
  computing_part part_;
  std::uint32_t virtual_ranks_ = 0;
  std::vector<tree_node> own_nodes_;
  std::map<block_id, held_ptr> blocks_;
};

}  // namespace troupe::actors
