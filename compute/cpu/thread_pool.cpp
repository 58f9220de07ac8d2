#include "compute/cpu/thread_pool.hpp"

#include <immintrin.h>

#include <chrono>
#include <utility>

#include "compute/executor.hpp"
#include "config/base/error.hpp"

namespace troupe::compute::cpu {
namespace {

constexpr auto spin_time = std::chrono::microseconds(50);

// Spins until `ready` or until the spin time is over; says whether it became ready.
template <class Condition>
bool spin(const Condition& ready) {
  const auto give_up = std::chrono::steady_clock::now() + spin_time;
  while (!ready()) {
    for (int i = 0; i < 32 && !ready(); ++i) _mm_pause();
    if (std::chrono::steady_clock::now() > give_up) return ready();
  }
  return true;
}

}  // namespace

thread_pool::thread_pool(int threads) {
  ensure(threads >= 1, "a thread pool needs at least one thread");
  for (int i = 1; i < threads; ++i) {
    workers_.emplace_back([this, i] { serve(i); });
  }
}

thread_pool::~thread_pool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    ++round_;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void thread_pool::serve(int thread) {
  _mm_setcsr(0x1F80);  // the default environment, whatever the creating thread had
  std::uint64_t seen = 0;
  while (true) {
    const auto changed = [&] { return round_.load(std::memory_order_acquire) != seen; };
    if (!spin(changed)) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, changed);
    }
    seen = round_.load(std::memory_order_acquire);
    if (stop_) return;
    work_off(thread);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

void thread_pool::work_off(int thread) {
  while (!cancelled()) {
    const std::size_t tile = next_.fetch_add(1, std::memory_order_relaxed);
    if (tile >= tiles_) return;
    try {
      (*work_)(tile, thread);
    } catch (...) {
      // Must not leave a worker thread, nor the caller while others still use `work_`.
      std::lock_guard lock(mutex_);
      if (!trouble_) trouble_ = std::current_exception();
      next_.store(tiles_, std::memory_order_relaxed);
    }
  }
}

void thread_pool::parallel_for(std::size_t tiles,
                               const std::function<void(std::size_t, int)>& work) {
  work_ = &work;
  tiles_ = tiles;
  next_.store(0, std::memory_order_relaxed);
  if (workers_.empty() || tiles <= 1) {
    work_off(0);
  } else {
    busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
    {
      std::lock_guard lock(mutex_);
      round_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    work_off(0);
    const auto idle = [&] { return busy_.load(std::memory_order_acquire) == 0; };
    while (!spin(idle)) std::this_thread::yield();
  }
  if (trouble_) std::rethrow_exception(std::exchange(trouble_, nullptr));
  if (cancelled()) throw executor::cancelled();
}

}  // namespace troupe::compute::cpu
