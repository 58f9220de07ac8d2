// Feeds the jobs of one step to the device, on the loop's thread, without ever waiting.
//
// Only a few jobs are with the device at a time: enough that it never idles while the loop does
// something else, few enough that a cancelled step ends at once. A job that is the first to read a
// layer's parameters waits until the layer is opened. What a job throws ends the step; jobs behind
// it do nothing. Not chosen: the whole step in the device's queue (nothing could be held back), and
// feeding from the device's thread (two threads would share the list).
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "actors/computation.hpp"
#include "actors/loop_post.hpp"
#include "model/training_pass.hpp"

namespace troupe::actors {

class step_feed : public std::enable_shared_from_this<step_feed> {
 public:
  struct events {
    std::function<void(const model::layer_source&)> complete;
    std::function<void()> micro_batch_done;         // may be empty
    std::function<void(std::exception_ptr)> ended;  // once, last
  };
  // `keep` lives as long as the jobs do.
  step_feed(compute::executor& device, loop_post::sender post, std::vector<model::step_job> jobs,
            std::size_t layers, std::shared_ptr<void> keep, events told);

  void begin();
  void open(std::size_t layer);
  // Drops what the device has not begun; `ended` follows, later, with `cancelled`.
  void cancel();
  bool over() const { return over_; }  // `ended` was called
  bool cancelled() const { return stop_->load(std::memory_order_relaxed); }
  work_seconds take_seconds() { return std::exchange(seconds_, {}); }

 private:
  void pump();
  void submit(std::size_t index);
  void finished(std::size_t index, std::exception_ptr trouble, double seconds);
  void end_if_idle();

  compute::executor& device_;
  loop_post::sender post_;
  std::vector<model::step_job> jobs_;
  std::vector<bool> opened_;  // by layer
  std::shared_ptr<void> keep_;
  events told_;
  std::size_t next_ = 0, in_flight_ = 0;
  std::exception_ptr trouble_;
  std::shared_ptr<std::atomic<bool>> stop_ = std::make_shared<std::atomic<bool>>(false);
  bool over_ = false;
  work_seconds seconds_;
};

}  // namespace troupe::actors
