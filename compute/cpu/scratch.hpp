// Memory that a thread keeps between calls, so that operations allocate nothing in the steady
// state.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace troupe::compute::cpu {

class scratch {
 public:
  // At least `floats` elements, aligned to 64 bytes. Old contents are lost when it has to grow.
  float* take(std::size_t floats) {
    if (floats > size_) {
      memory_.reset();
      size_ = 0;
      const std::size_t bytes = (floats * sizeof(float) + 63) / 64 * 64;
      memory_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
      if (!memory_) throw std::bad_alloc();
      size_ = floats;
    }
    return memory_.get();
  }

 private:
  struct release {
    void operator()(float* memory) const { std::free(memory); }
  };
  std::unique_ptr<float, release> memory_;
  std::size_t size_ = 0;
};

}  // namespace troupe::compute::cpu
