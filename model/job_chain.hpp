// Jobs for an executor that follow each other, with one place where trouble is noticed: wait()
// rethrows the first failure, and jobs behind it do nothing.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "compute/executor.hpp"

namespace troupe::model {

class job_chain {
 public:
  // `give_up`, if there is one, is asked before each job; once it says yes, the chain ends as
  // cancelled.
  explicit job_chain(compute::executor& device, std::function<bool()> give_up = {})
      : device_(device), shared_(std::make_shared<shared>()) {
    shared_->give_up = std::move(give_up);
  }

  void add(compute::executor::job work) {
    device_.submit(
        compute::executor::priority::compute,
        [work = std::move(work), s = shared_](compute::ops& ops) {
          if (s->failed.load(std::memory_order_relaxed)) return;
          if (s->give_up && s->give_up()) throw compute::executor::cancelled();
          work(ops);
        },
        [s = shared_](std::exception_ptr trouble) {
          if (!trouble) return;
          std::lock_guard lock(s->mutex);
          if (!s->first) s->first = trouble;
          s->failed.store(true, std::memory_order_relaxed);
        });
  }

  // Returns once all jobs added so far are complete.
  void wait() {
    std::exception_ptr last;
    try {
      device_.run([](compute::ops&) {});
    } catch (...) {
      last = std::current_exception();
    }
    std::lock_guard lock(shared_->mutex);
    if (shared_->first) std::rethrow_exception(shared_->first);
    if (last) std::rethrow_exception(last);
  }

 private:
  struct shared {
    std::function<bool()> give_up;
    std::mutex mutex;
    std::exception_ptr first;
    std::atomic<bool> failed{false};
  };
  compute::executor& device_;
  std::shared_ptr<shared> shared_;
};

}  // namespace troupe::model
