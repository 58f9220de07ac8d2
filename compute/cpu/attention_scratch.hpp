// Memory for one tile of attention, kept by each thread from call to call: fetching a fresh quarter
// of a megabyte per call costs page faults. Its size follows from the head and the block sizes, not
// from T.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace troupe::compute::cpu {

class attention_scratch {
 public:
  // At least `floats` floats, shared by all callers on this thread, with whatever they left there.
  static attention_scratch& of_this_thread(std::size_t floats) {
    thread_local attention_scratch scratch;
    scratch.reserve(floats);
    scratch.used_ = 0;
    return scratch;
  }

  // The next `floats` floats, aligned to 64 bytes.
  float* take(std::size_t floats) {
    float* const here = memory_.get() + used_;
    used_ += padded(floats);
    return here;
  }

  // What `take(floats)` uses up.
  static constexpr std::size_t padded(std::size_t floats) { return (floats + 15) / 16 * 16; }

 private:
  struct release {
    void operator()(float* p) const { std::free(p); }
  };

  void reserve(std::size_t floats) {
    if (floats <= size_) return;
    const std::size_t bytes = padded(floats) * sizeof(float);
    memory_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
    if (!memory_) throw std::bad_alloc();
    std::memset(memory_.get(), 0, bytes);
    size_ = padded(floats);
  }

  std::unique_ptr<float, release> memory_;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
};

}  // namespace troupe::compute::cpu
