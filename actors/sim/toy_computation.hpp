// The simulated world's device: toy arithmetic as jobs that take virtual time, one after another,
// protocol jobs first. Everything that a member would keep in memory is really here, so a watcher
// can look at it at any moment.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "actors/computation.hpp"
#include "actors/sim/timeline.hpp"
#include "actors/sim/toy_model.hpp"

namespace troupe::actors::sim {

// How long jobs take; chosen by the world from its seed.
struct toy_speed {
  std::function<time_since_start()> layer;     // one layer forward or backward
  std::function<time_since_start()> protocol;  // reduce, hash, apply of one block
  std::function<time_since_start()> load;
};

class toy_computation : public computation {
 public:
  // `post` brings a completion to the member's loop. `computed` is told before a layer's forward
  // pass reads its parameters.
  toy_computation(const toy_shape& toy, timeline& time, const clock_source& clock, toy_speed speed,
                  std::function<void(std::function<void()>)> post,
                  std::function<void(std::uint64_t step, std::uint32_t layer)> computed);

  const world_shape& shape() const override { return shape_; }
  void adopt(const member_share& share) override;
  void initialize(completion done) override;
  void load(std::uint64_t step, completion done) override;
  void start(std::uint64_t step, step_events events) override;
  void open(std::uint32_t layer) override;
  void cancel() override;
  std::span<const std::byte> node(const node_key& key) const override;
  std::span<std::byte> slot(const node_key& key) override;
  void reduce(block_id block, std::uint64_t step, answer<sum_facts> done) override;
  std::span<std::byte> sum(block_id block, std::uint64_t step) override;
  void hash_sum(block_id block, std::uint64_t step, answer<hash128> done) override;
  void apply(block_id block, const protocol::decision_record& record, completion done) override;
  std::span<std::byte> parameters(block_id block) override;
  void hash_state(block_id block, answer<block_hashes> done) override;
  block_memory memory(block_id block) override;
  void copy_state(block_id block, answer<state_copy> done) override;
  void make_room(block_id block) override;
  void take_state(block_id block, std::shared_ptr<const std::vector<std::byte>> bytes,
                  const hash128& hash, completion done) override;
  void evaluate(answer<std::vector<leaf_loss>> done) override;
  work_seconds take_seconds() override { return {}; }
  std::string numerics_class() const override { return "toy"; }
  std::uint64_t activation_bytes() const override { return 0; }

  // --- for watchers ---
  const toy_state& state(block_id block) const { return states_.at(block); }
  bool holds(block_id block) const { return held_.contains(block); }
  // An update of the block is under way: its memory is neither the old state nor the new one.
  bool is_torn(block_id block) const { return torn_.contains(block); }
  // The sum of a step as it lies in memory.
  const toy_block& sum_in_memory(block_id block, std::uint64_t step) const {
    return sums_.at({block, step % 2});
  }

 private:
  struct job {
    time_since_start takes;
    std::function<void()> work;  // at its end; its completion is posted from there
    std::function<void()> begin = [] {};
  };
  void queue(
      std::deque<job>& jobs, time_since_start takes, std::function<void()> work,
      std::function<void()> begin = [] {});
  void run_next();
  void forward_next();
  void backward(std::uint32_t layer);
  void make_nodes(std::uint32_t layer, std::uint8_t source);
  toy_block tree(block_id block, std::uint8_t source, tree_node at) const;
  std::vector<const toy_block*> parameters_of(std::uint32_t layer) const;

  toy_shape toy_;
  world_shape shape_;
  timeline& time_;
  const clock_source& clock_;
  toy_speed speed_;
  std::function<void(std::function<void()>)> post_;
  std::function<void(std::uint64_t, std::uint32_t)> computed_;

  // Whoever waits for virtual time must not outlive this.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  member_share share_;
  std::uint64_t share_number_ = 0;  // rises with every adopt(): jobs of an older share do nothing
  std::map<block_id, toy_state> states_;  // of the whole model
  std::set<block_id> held_;
  std::map<block_id, toy_state> torn_;  // states before the updates that run
  std::map<std::pair<block_id, std::uint64_t>, toy_block> sums_;  // by parity of the step
  std::map<node_key, toy_block> nodes_;                           // own
  std::map<node_key, toy_block> slots_;                           // of other members

  std::deque<job> protocol_jobs_, compute_jobs_;
  bool busy_ = false;

  // The step that is being computed.
  std::uint64_t step_ = 0;
  std::uint64_t attempt_ = 0;  // rises with every start and cancel: jobs of an older one do nothing
  std::optional<step_events> events_;
  std::set<std::uint32_t> open_;
  std::uint32_t next_forward_ = 0;
  bool forward_queued_ = false;
  std::vector<std::vector<toy_activation>> activations_;  // [layer + 1][leaf of the share]
};

}  // namespace troupe::actors::sim
