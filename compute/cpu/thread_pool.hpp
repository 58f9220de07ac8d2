// Threads over tiles: the only parallelism inside an operation. Tiles are handed out as threads
// come for them, which is safe because no result depends on who computes a tile. The calling thread
// works too. Every thread runs with the default floating-point environment (round to nearest,
// subnormals kept). A waiting thread spins for about 50 us, then sleeps.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::compute::cpu {

class thread_pool {
 public:
  explicit thread_pool(int threads);
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls work(tile, thread) for every tile in 0 ... tiles-1; thread in 0 ... size()-1 names the
  // caller's scratch memory. Returns when all are done. Throws executor::cancelled if the flag was
  // raised before all tiles were done, or what `work` threw first; tiles already begun are finished
  // before. Not reentrant, one caller at a time.
  void parallel_for(std::size_t tiles,
                    const std::function<void(std::size_t tile, int thread)>& work);

  // Looked at before each tile; owned by the executor.
  void set_cancel_flag(const std::atomic<bool>* flag) { cancel_ = flag; }

 private:
  void serve(int thread);
  void work_off(int thread);
  bool cancelled() const { return cancel_ != nullptr && cancel_->load(std::memory_order_relaxed); }

  std::vector<std::thread> workers_;
  const std::atomic<bool>* cancel_ = nullptr;
  const std::function<void(std::size_t, int)>* work_ = nullptr;
  std::size_t tiles_ = 0;
  std::atomic<std::size_t> next_{0};
  std::atomic<int> busy_{0};
  std::atomic<std::uint64_t> round_{0};  // rises by one a parallel_for
  std::atomic<bool> stop_{false};
  std::exception_ptr trouble_;  // what `work` threw first; under mutex_ while threads work
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace troupe::compute::cpu
