// A device without memory, on which nothing is computed: for the question how much would be
// allocated. Its buffers have a size and no address, and its jobs are done at once by doing
// nothing. Not chosen: formulas beside the code that allocates, which nobody would keep equal.
#pragma once

#include <string>

#include "compute/executor.hpp"

namespace troupe::compute {

class dry_executor final : public executor {
 public:
  void submit(priority, job, completion done) override { done(nullptr); }
  void cancel() override {}
  bool busy() const override { return false; }
  buffer allocate(std::size_t elements, dtype type) override {
    return {{nullptr, elements, type, device_kind::cpu}, {}};
  }
  int threads() const override { return 1; }
  std::string numerics_class() const override { return "none"; }
};

}  // namespace troupe::compute
