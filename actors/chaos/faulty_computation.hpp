// A member's computation with something wrong in it, for faults that live there: a compute thread
// that stands still, and a gradient that is no number. Everything else is passed on.
//
// The thread stands still in a job of its own, in front of all others; signs of life go on, because
// they are the loop's. A gradient is spoilt when its node is complete and before anybody is told:
// what is no number in one micro-batch is none in every sum that it enters, so it makes no
// difference which micro-batch it was.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/computation.hpp"
#include "compute/executor.hpp"

namespace troupe::actors::chaos {

// Where a job waits until it may go on. Shared with the job, which may outlive whoever asked.
class gate {
 public:
  void open();
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

class faulty_computation final : public computation {
 public:
  explicit faulty_computation(std::unique_ptr<computation> work) : work_(std::move(work)) {}
  ~faulty_computation() override;

  // The device does nothing from the moment on at which `begun` is called, on its thread. `after`
  // ends it.
  void hang(compute::executor& device, std::uint64_t id, std::function<void()> begun);
  bool release(std::uint64_t id);  // false: it did not hang for that

  // The next gradient of this layer that is complete is no number; `done` is told the step.
  void spoil(std::uint32_t layer, std::function<void(std::uint64_t step)> done);

  const world_shape& shape() const override { return work_->shape(); }
  void adopt(const member_share& share) override;
  void initialize(completion done) override { work_->initialize(std::move(done)); }
  void load(std::uint64_t step, completion done) override { work_->load(step, std::move(done)); }
  void start(std::uint64_t step, step_events events) override;
  void open(std::uint32_t layer) override { work_->open(layer); }
  void cancel() override { work_->cancel(); }
  std::span<const std::byte> node(const node_key& key) const override { return work_->node(key); }
  std::span<std::byte> slot(const node_key& key) override { return work_->slot(key); }
  void reduce(block_id block, std::uint64_t step, answer<sum_facts> done) override {
    work_->reduce(block, step, std::move(done));
  }
  std::span<std::byte> sum(block_id block, std::uint64_t step) override {
    return work_->sum(block, step);
  }
  void hash_sum(block_id block, std::uint64_t step, answer<hash128> done) override {
    work_->hash_sum(block, step, std::move(done));
  }
  void apply(block_id block, const protocol::decision_record& record, completion done) override {
    work_->apply(block, record, std::move(done));
  }
  std::span<std::byte> parameters(block_id block) override { return work_->parameters(block); }
  void hash_state(block_id block, answer<block_hashes> done) override {
    work_->hash_state(block, std::move(done));
  }
  block_memory memory(block_id block) override { return work_->memory(block); }
  void copy_state(block_id block, answer<state_copy> done) override {
    work_->copy_state(block, std::move(done));
  }
  void make_room(block_id block) override { work_->make_room(block); }
  void take_state(block_id block, std::shared_ptr<const std::vector<std::byte>> bytes,
                  const hash128& hash, completion done) override {
    work_->take_state(block, std::move(bytes), hash, std::move(done));
  }
  void evaluate(answer<std::vector<leaf_loss>> done) override { work_->evaluate(std::move(done)); }
  work_seconds take_seconds() override { return work_->take_seconds(); }
  std::string numerics_class() const override { return work_->numerics_class(); }
  std::uint64_t activation_bytes() const override { return work_->activation_bytes(); }

 private:
  struct wish {
    std::uint32_t layer;
    std::function<void(std::uint64_t)> done;
  };
  void spoil_if_wished(std::uint64_t step, std::uint32_t layer, std::uint8_t source);

  std::unique_ptr<computation> work_;
  member_share share_;
  std::map<std::uint64_t, std::shared_ptr<gate>> hanging_;
  std::vector<wish> wishes_;
};

}  // namespace troupe::actors::chaos
