#include "actors/step_feed.hpp"

#include <utility>

#include "actors/stopwatch.hpp"

namespace troupe::actors {
namespace {

// One runs, the others wait in the device's queue while the loop is busy.
constexpr std::size_t most_in_flight = 3;

}  // namespace

step_feed::step_feed(compute::executor& device, loop_post::sender post,
                     std::vector<model::step_job> jobs, std::size_t layers,
                     std::shared_ptr<void> keep, events told)
    : device_(device),
      post_(std::move(post)),
      jobs_(std::move(jobs)),
      opened_(layers),
      keep_(std::move(keep)),
      told_(std::move(told)) {}

void step_feed::begin() {
  pump();
  if (jobs_.empty()) post_([self = shared_from_this()] { self->end_if_idle(); });
}

void step_feed::open(std::size_t layer) {
  opened_.at(layer) = true;
  pump();
}

void step_feed::cancel() {
  if (over_ || cancelled()) return;
  stop_->store(true, std::memory_order_relaxed);
  if (!trouble_) trouble_ = std::make_exception_ptr(compute::executor::cancelled());
  device_.cancel();
  // Also if no job is with the device, because all wait for parameters.
  post_([self = shared_from_this()] { self->end_if_idle(); });
}

void step_feed::pump() {
  while (!cancelled() && in_flight_ < most_in_flight && next_ < jobs_.size()) {
    const auto& needs = jobs_[next_].needs;
    if (needs && !opened_[*needs]) return;
    submit(next_++);
  }
}

void step_feed::submit(std::size_t index) {
  ++in_flight_;
  const auto seconds = std::make_shared<double>(0);
  device_.submit(
      compute::executor::priority::compute,
      [work = std::move(jobs_[index].work), seconds, stop = stop_](compute::ops& ops) {
        if (stop->load(std::memory_order_relaxed)) throw compute::executor::cancelled();
        const stopwatch watch;
        work(ops);
        *seconds = watch.seconds();
      },
      // The feed moves on with the call, so that it also ends on the loop's thread.
      [self = shared_from_this(), post = post_, index,
       seconds](std::exception_ptr trouble) mutable {
        if (trouble) self->stop_->store(true, std::memory_order_relaxed);
        post([self = std::move(self), index, trouble, seconds] {
          self->finished(index, trouble, *seconds);
        });
      });
}

void step_feed::finished(std::size_t index, std::exception_ptr trouble, double seconds) {
  --in_flight_;
  const model::step_job& job = jobs_[index];
  (job.kind == model::step_job::part::forward ? seconds_.forward : seconds_.backward) += seconds;
  if (trouble && !trouble_) trouble_ = trouble;
  if (!trouble_) {
    pump();  // first: the device should not wait for what the actors do
    for (const model::layer_source& source : job.completes) told_.complete(source);
    if (job.ends_micro_batch && told_.micro_batch_done) told_.micro_batch_done();
  }
  end_if_idle();
}

void step_feed::end_if_idle() {
  if (over_ || in_flight_ > 0) return;
  if (!trouble_ && next_ < jobs_.size()) return;
  over_ = true;
  told_.ended(trouble_);
}

}  // namespace troupe::actors
