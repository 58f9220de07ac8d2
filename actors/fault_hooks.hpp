// What a worker that was started under chaos is asked, at every named point of the protocol and in
// every turn of its loop: whether something is to go wrong now. An ordinary run has none of these,
// and then nothing is asked.
//
// reached() may not come back (the process ends or stands still there) and may throw, which is then
// an exception in the actor that reached the point. So a point is named by whoever is there, at the
// moment, and not told by another thread afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "actors/computation.hpp"
#include "compute/executor.hpp"

namespace troupe::actors {

class fault_hooks {
 public:
  virtual ~fault_hooks() = default;
  // `point`: as scenarios name it, "commit-sent"; `k`: the how-manieth of it in its step or plan,
  // where points of this name count, else 0.
  virtual void reached(std::string_view point, std::uint64_t step, std::uint32_t k) = 0;
  // Between two turns of the loop: what is to go wrong at no point in particular.
  virtual void turn() = 0;
  // What stands between the actors and the device from now on. The device outlives the answer.
  virtual std::unique_ptr<computation> around(std::unique_ptr<computation> work,
                                              compute::executor& device) = 0;
};

}  // namespace troupe::actors
