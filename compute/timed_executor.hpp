// An executor that measures: forwards everything to another one and adds up, by operation, calls,
// seconds and floating-point operations. For benchmarks and profiles of backends whose operations
// run inside the call.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "compute/executor.hpp"

namespace troupe::compute {

struct op_time {
  std::uint64_t calls = 0;
  double seconds = 0;
  double flops = 0;  // multiply-adds counted as two; 0 for operations that are bound by memory
};
using op_times = std::map<std::string, op_time>;

class timed_executor final : public executor {
 public:
  explicit timed_executor(executor& below) : below_(below), times_(std::make_shared<op_times>()) {}

  void submit(priority urgency, job work, completion done) override;
  void cancel() override { below_.cancel(); }
  bool busy() const override { return below_.busy(); }
  buffer allocate(std::size_t elements, dtype type) override {
    return below_.allocate(elements, type);
  }
  int threads() const override { return below_.threads(); }
  std::string numerics_class() const override { return below_.numerics_class(); }

  // Only while no job is queued or running.
  const op_times& times() const { return *times_; }
  void reset() { times_->clear(); }

 private:
  executor& below_;
  std::shared_ptr<op_times> times_;
};

}  // namespace troupe::compute
