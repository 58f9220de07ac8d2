#include "actors/helper_thread.hpp"

#include <utility>

namespace troupe::actors {

helper_thread::helper_thread() : thread_([this] { serve(); }) {}

helper_thread::~helper_thread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void helper_thread::end() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void helper_thread::add(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    if (ending_) return;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void helper_thread::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || ending_ || !tasks_.empty(); });
    if (stop_ || tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = {};
    lock.lock();
  }
}

}  // namespace troupe::actors
