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
  ~helper_thread();                      // waits for the running task
  void add(std::function<void()> task);  // nothing once it has ended
  // Runs what was added, then ends the thread; the object stays.
  void end();

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;    // at once
  bool ending_ = false;  // once nothing is left to do
  std::thread thread_;   // last: it uses all of the above
};

}  // namespace troupe::actors
