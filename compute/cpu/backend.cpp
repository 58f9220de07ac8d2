// The CPU device: an executor thread that runs jobs by priority, and the operations on a pool of
// threads.

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <thread>

#include "compute/cpu/kernels.hpp"
#include "compute/cpu/thread_pool.hpp"
#include "compute/executor.hpp"

namespace troupe::compute {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

class cpu_ops final : public ops {
 public:
  explicit cpu_ops(cpu::thread_pool& pool) : pool_(pool) {}

  void linear(const linear_args& a) override { cpu::linear(pool_, a); }
  void linear_backward_input(const linear_backward_input_args& a) override {
    cpu::linear_backward_input(pool_, a);
  }
  void linear_backward_weight(const linear_backward_weight_args& a) override {
    cpu::linear_backward_weight(pool_, a);
  }
  void norm(const norm_args& a) override { cpu::norm(pool_, a); }
  void norm_backward_input(const norm_backward_input_args& a) override {
    cpu::norm_backward_input(pool_, a);
  }
  void norm_backward_weight(const norm_backward_weight_args& a) override {
    cpu::norm_backward_weight(pool_, a);
  }
  void rotate(const rotate_args& a) override { cpu::rotate(pool_, a); }
  void attention(const attention_args& a) override { cpu::attention(pool_, a); }
  void attention_backward(const attention_backward_args& a) override {
    cpu::attention_backward(pool_, a);
  }
  void swiglu(const swiglu_args& a) override { cpu::swiglu(pool_, a); }
  void swiglu_backward(const swiglu_backward_args& a) override { cpu::swiglu_backward(pool_, a); }
  void embedding(const embedding_args& a) override { cpu::embedding(pool_, a); }
  void embedding_backward(const embedding_backward_args& a) override {
    cpu::embedding_backward(pool_, a);
  }
  void dropout(const dropout_args& a) override { cpu::dropout(pool_, a); }
  void cross_entropy(const cross_entropy_args& a) override { cpu::cross_entropy(pool_, a); }
  void adamw(const adamw_args& a) override { cpu::adamw(pool_, a); }
  void fill(view out, float value) override { cpu::fill(pool_, out, value); }
  void copy(const_view from, view to) override { cpu::copy(pool_, from, to); }
  void add(const_view a, const_view b, view out) override { cpu::add(pool_, a, b, out); }
  void sum_squares(const_view x, view out) override { cpu::sum_squares(pool_, x, out); }
  void add_in_order(const_view x, view out) override { cpu::add_in_order(pool_, x, out); }

 private:
  cpu::thread_pool& pool_;
};

class cpu_executor final : public executor {
 public:
  explicit cpu_executor(int threads) : pool_(threads), ops_(pool_), thread_([this] { serve(); }) {}

  ~cpu_executor() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  void submit(priority urgency, job work, completion done) override {
    {
      std::lock_guard lock(mutex_);
      queue(urgency).push_back({std::move(work), std::move(done)});
    }
    wake_.notify_one();
  }

  void cancel() override {
    std::deque<entry> dropped;
    {
      std::lock_guard lock(mutex_);
      dropped.swap(compute_);
      if (running_compute_) cancel_ = true;
    }
    for (entry& e : dropped) e.done(std::make_exception_ptr(cancelled()));
  }

  bool busy() const override {
    std::lock_guard lock(mutex_);
    return running_ || !protocol_.empty() || !compute_.empty();
  }

  buffer allocate(std::size_t elements, dtype type) override {
    const std::size_t wanted = elements * bytes_of(type);
    // Whole huge pages for what is large: a matrix product walks many rows at once, and with 4 KiB
    // pages it spends its time on address translation. A kernel that has none to give ignores the
    // advice.
    const std::size_t page = wanted >= huge_page ? huge_page : 64;
    const std::size_t bytes = std::max(page, (wanted + page - 1) / page * page);
    void* memory = std::aligned_alloc(page, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    if (page == huge_page) madvise(memory, bytes, MADV_HUGEPAGE);
    std::memset(memory, 0, bytes);
    return {{memory, elements, type, device_kind::cpu}, [](void* p) { std::free(p); }};
  }

  int threads() const override { return pool_.size(); }
  std::string numerics_class() const override { return "cpu-chain"; }

 private:
  struct entry {
    job work;
    completion done;
  };

  std::deque<entry>& queue(priority urgency) {
    return urgency == priority::protocol ? protocol_ : compute_;
  }

  void serve() {
    _mm_setcsr(0x1F80);  // round to nearest, subnormals kept: the bits assume it
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stop_ || !protocol_.empty() || !compute_.empty(); });
      if (stop_ && protocol_.empty() && compute_.empty()) return;
      const bool urgent = !protocol_.empty();
      std::deque<entry>& from = urgent ? protocol_ : compute_;
      entry next = std::move(from.front());
      from.pop_front();
      running_ = true;
      running_compute_ = !urgent;
      cancel_ = false;
      pool_.set_cancel_flag(urgent ? nullptr : &cancel_);
      lock.unlock();
      std::exception_ptr trouble;
      try {
        next.work(ops_);
      } catch (...) {
        trouble = std::current_exception();
      }
      next.done(trouble);
      next = {};
      lock.lock();
      running_ = running_compute_ = false;
    }
  }

  cpu::thread_pool pool_;
  cpu_ops ops_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<entry> protocol_;
  std::deque<entry> compute_;
  std::atomic<bool> cancel_{false};
  bool running_ = false;  // a job of any priority, its completion included
  bool running_compute_ = false;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<executor> make_cpu_executor(int threads) {
  return std::make_unique<cpu_executor>(threads);
}

}  // namespace troupe::compute
