// Jobs of the step protocol (reduce, hash, apply, copies): they overtake the computation in the
// device's queue, and their answer comes back to the loop's thread.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "actors/computation.hpp"
#include "actors/loop_post.hpp"
#include "actors/stopwatch.hpp"
#include "compute/executor.hpp"

namespace troupe::actors {

class protocol_jobs {
 public:
  protocol_jobs(compute::executor& device, loop_post::sender post)
      : device_(device), post_(std::move(post)) {}

  // `work(ops, answer)` fills the answer. Its seconds are added to `into` on the loop's thread.
  template <class Answer>
  void submit(double& into, std::function<void(compute::ops&, Answer&)> work,
              computation::answer<Answer> done) {
    const auto outcome = std::make_shared<std::pair<Answer, double>>();
    device_.submit(
        compute::executor::priority::protocol,
        [work = std::move(work), outcome](compute::ops& ops) {
          const stopwatch watch;
          work(ops, outcome->first);
          outcome->second = watch.seconds();
        },
        // The answer's function moves on with the call, so that it also ends on the loop's thread.
        [post = post_, done = std::move(done), outcome, &into](std::exception_ptr trouble) mutable {
          post([done = std::move(done), outcome, trouble, &into] {
            into += outcome->second;
            if (done) done(trouble, outcome->first);
          });
        });
  }
  void submit(double& into, compute::executor::job work, computation::completion done) {
    struct nothing {};
    computation::answer<nothing> told;
    if (done) told = [done = std::move(done)](std::exception_ptr t, nothing) { done(t); };
    submit<nothing>(
        into, [work = std::move(work)](compute::ops& ops, nothing&) { work(ops); },
        std::move(told));
  }

 private:
  compute::executor& device_;
  loop_post::sender post_;
};

}  // namespace troupe::actors
