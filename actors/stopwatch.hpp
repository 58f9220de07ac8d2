// Seconds since it was made, for figures that people read; never for a decision.
#pragma once

#include <chrono>

namespace troupe::actors {

class stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  double lap() {
    const double passed = seconds();
    start_ = std::chrono::steady_clock::now();
    return passed;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace troupe::actors
