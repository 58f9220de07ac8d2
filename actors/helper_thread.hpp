// A thread for what blocks: reading samples, validation, first values. Tasks run one after the
// other in their order; those that have not begun when the helper ends are dropped.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe::actors {

class helper_thread {
 public:
  helper_thread();
  ~helper_thread();  // waits for the running task
  void add(std::function<void()> task);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace troupe::actors
