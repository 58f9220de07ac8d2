#include "actors/loop.hpp"

#include <caf/all.hpp>
#include <caf/detail/simple_actor_clock.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include <algorithm>
#include <deque>
#include <mutex>
#include <vector>

#include "config/base/error.hpp"

namespace troupe::actors {
namespace {

using caf_time = caf::actor_clock::time_point;

// CAF's timers over our clock. The schedule itself is CAF's.
class loop_clock final : public caf::detail::simple_actor_clock {
 public:
  explicit loop_clock(const clock_source& source) : source_(source) {}
  caf_time now() const noexcept override { return caf_time(source_.now()); }

 private:
  const clock_source& source_;
};

// Keeps the actors that have messages, in the order in which they got them.
class loop_scheduler final : public caf::scheduler::abstract_coordinator {
 public:
  loop_scheduler(caf::actor_system& system, loop_clock& clock)
      : abstract_coordinator(system), unit_(&system, runnable_), clock_(clock) {}

  bool run_one() {
    if (runnable_.empty()) return false;
    caf::resumable* job = runnable_.front();
    runnable_.pop_front();
    switch (job->resume(&unit_, 1)) {
      case caf::resumable::resume_later:
        runnable_.push_back(job);
        break;
      case caf::resumable::done:
      case caf::resumable::awaiting_message:
        caf::intrusive_ptr_release(job);
        break;
      case caf::resumable::shutdown_execution_unit:
        break;
    }
    return true;
  }

  void enqueue(caf::resumable* job) override { runnable_.push_back(job); }
  caf::actor_clock& clock() noexcept override { return clock_; }
  bool detaches_utility_actors() const override { return false; }
  // Without CAF's printer: output is the monitor's.
  void start() override {}
  void stop() override {
    clock_.cancel_all();
    while (run_one()) {
    }
  }

 private:
  // What actors meet while they run: new work goes to the same queue.
  class unit final : public caf::execution_unit {
   public:
    unit(caf::actor_system* system, std::deque<caf::resumable*>& queue)
        : execution_unit(system), queue_(queue) {}
    void exec_later(caf::resumable* job) override { queue_.push_back(job); }

   private:
    std::deque<caf::resumable*>& queue_;
  };

  std::deque<caf::resumable*> runnable_;
  unit unit_;
  loop_clock& clock_;
};

}  // namespace

struct loop::parts {
  explicit parts(const clock_source& source) : clock(source) {
    // CAF reads neither arguments nor files; the only module is our scheduler.
    config.module_factories.push_back([this](caf::actor_system& system) {
      auto made = std::make_unique<loop_scheduler>(system, clock);
      scheduler = made.get();
      return made.release();
    });
    config.set("logger.verbosity", caf::atom("quiet"));
  }
  loop_clock clock;
  caf::actor_system_config config;
  loop_scheduler* scheduler = nullptr;  // owned by the actor system

  std::mutex mutex;
  std::vector<std::function<void()>> posted, running;
};

loop::loop(const clock_source& clock)
    : clock_(clock),
      parts_(std::make_unique<parts>(clock)),
      system_(std::make_unique<caf::actor_system>(parts_->config)) {
  ensure(parts_->scheduler != nullptr, "CAF did not take our scheduler");
}

loop::~loop() {
  // CAF waits for all actors to end, but nobody else runs them: whatever is still there has been
  // told to end by its parent and only needs its turn.
  while (parts_->scheduler->run_one()) {
  }
  system_.reset();
}

void loop::post(std::function<void()> work) {
  {
    std::lock_guard lock(parts_->mutex);
    parts_->posted.push_back(std::move(work));
  }
  if (wake_) wake_();
}

bool loop::run_posted() {
  {
    std::lock_guard lock(parts_->mutex);
    parts_->running.swap(parts_->posted);
  }
  std::vector<std::function<void()>>& running = parts_->running;
  std::size_t ran = 0;
  while (ran < running.size() && !leaving_) {
    const time_since_start started = clock_.now();
    running[ran++]();
    note_duration(started);
  }
  if (ran < running.size()) {
    std::lock_guard lock(parts_->mutex);
    parts_->posted.insert(parts_->posted.begin(),
                          std::move_iterator(running.begin() + static_cast<std::ptrdiff_t>(ran)),
                          std::move_iterator(running.end()));
  }
  running.clear();
  return ran > 0;
}

bool loop::run_ready(std::size_t most) {
  leaving_ = false;
  bool any = run_posted();
  if (leaving_) return true;
  any |= parts_->clock.trigger_expired_timeouts() > 0;
  for (std::size_t i = 0; i < most; ++i) {
    const time_since_start started = clock_.now();
    if (!parts_->scheduler->run_one()) break;
    note_duration(started);
    any = true;
    if (leaving_) break;
  }
  return any;
}

void loop::note_duration(time_since_start started) {
  constexpr std::chrono::milliseconds longest_allowed{5};
  const time_since_start took = clock_.now() - started;
  if (took > longest_allowed) ++slow_jobs_;
  longest_job_ = std::max(longest_job_, std::chrono::duration<double>(took).count());
}

std::optional<time_since_start> loop::next_timer() const {
  const auto& schedule = parts_->clock.schedule();
  if (schedule.empty()) return std::nullopt;
  return std::chrono::duration_cast<time_since_start>(schedule.begin()->first.time_since_epoch());
}

}  // namespace troupe::actors
