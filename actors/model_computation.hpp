// The computation of a member on a real device: the model on an executor, samples from a data set.
//
// Everything that touches the device is a job: the step's go in order, a few at a time
// (step_feed.hpp), those on held blocks overtake them (held_blocks.hpp). What blocks (reading
// samples, validation, first values) runs on helper threads. All state here belongs to the loop's
// thread; what others finish is posted back to it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "actors/computation.hpp"
#include "actors/held_blocks.hpp"
#include "actors/helper_thread.hpp"
#include "actors/loop_post.hpp"
#include "actors/step_feed.hpp"
#include "actors/trainer.hpp"
#include "actors/validation.hpp"

namespace troupe::actors {

// What a completion brings when samples could not be read; a computation that was cancelled brings
// compute::executor::cancelled.
struct unreadable_samples : std::runtime_error {
  explicit unreadable_samples(const error& why) : std::runtime_error(why.message), cause(why) {}
  error cause;
};

// Called on helper threads, one call at a time for each.
struct sample_sources {
  window_source training;    // by position in the run
  window_source validation;  // by window
  std::uint64_t validation_windows = 0;
  std::size_t validation_at_once = 1;  // windows computed together, at most
};

class model_computation final : public computation {
 public:
  // `device` outlives the object. `post` queues a call onto the loop's thread.
  model_computation(compute::executor& device, const model::description& d,
                    const trainer_settings& settings, sample_sources sources, post_function post);
  ~model_computation() override;  // waits for running jobs

  const world_shape& shape() const override { return shape_; }
  // Cancels what is being computed for the share before.
  void adopt(const member_share& share) override;
  void initialize(completion done) override;

  void load(std::uint64_t step, completion done) override;
  void start(std::uint64_t step, step_events events) override;
  // Without a step that is being computed it means nothing.
  void open(std::uint32_t layer) override;
  // Also ends a validation.
  void cancel() override;
  std::span<const std::byte> node(const node_key& key) const override;

  std::span<std::byte> slot(const node_key& key) override { return blocks_.slot(key); }
  void reduce(block_id block, std::uint64_t step, answer<sum_facts> done) override {
    blocks_.reduce(block, step, std::move(done));
  }
  // As long as the contract says; where this member computes all virtual ranks, until the layer is
  // opened in the next step.
  std::span<std::byte> sum(block_id block, std::uint64_t step) override {
    return blocks_.sum(block, step);
  }
  void hash_sum(block_id block, std::uint64_t step, answer<hash128> done) override {
    blocks_.hash_sum(block, step, std::move(done));
  }
  void apply(block_id block, const protocol::decision_record& record, completion done) override {
    blocks_.apply(block, record, std::move(done));
  }
  std::span<std::byte> parameters(block_id block) override { return blocks_.parameters(block); }
  void hash_state(block_id block, answer<block_hashes> done) override {
    blocks_.hash_state(block, std::move(done));
  }
  block_memory memory(block_id block) override { return blocks_.memory(block); }
  void copy_state(block_id block, answer<state_copy> done) override {
    blocks_.copy_state(block, std::move(done));
  }
  void make_room(block_id block) override { blocks_.make_room(block); }
  void take_state(block_id block, std::shared_ptr<const std::vector<std::byte>> bytes,
                  const hash128& hash, completion done) override {
    blocks_.take_state(block, std::move(bytes), hash, std::move(done));
  }

  void evaluate(answer<std::vector<leaf_loss>> done) override;

  work_seconds take_seconds() override;
  std::string numerics_class() const override { return device_.numerics_class(); }
  std::uint64_t activation_bytes() const override;

 private:
  // The samples of one step for one run of virtual ranks.
  struct samples {
    tree_node ranks;
    std::vector<std::int32_t> tokens, targets;
    status read = done{};
    double seconds = 0;
  };
  using samples_ptr = std::shared_ptr<samples>;

  samples_ptr read_samples(std::uint64_t step, tree_node ranks) const;  // on the helper's thread
  tree_node ranks() const { return {share_.first_leaf, share_.leaves}; }
  std::vector<leaf_loss> losses_of(const model::training_pass& pass) const;

  compute::executor& device_;
  trainer_settings settings_;
  sample_sources sources_;
  loop_post post_;
  model::network network_;
  world_shape shape_;
  work_seconds seconds_;
  held_blocks blocks_;

  member_share share_;
  computing_part part_;
  std::shared_ptr<model::pass_memory> memory_ = std::make_shared<model::pass_memory>();
  std::map<std::uint64_t, samples_ptr> loaded_;
  std::shared_ptr<step_feed> feed_;

  std::shared_ptr<std::atomic<bool>> stop_validation_;  // of the one that runs
  std::unique_ptr<model::evaluation> evaluation_;       // of the validation's thread
  helper_thread data_thread_, validation_thread_;       // last: they use all of the above
};

}  // namespace troupe::actors
