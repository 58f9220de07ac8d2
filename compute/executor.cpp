#include "compute/executor.hpp"

#include <future>

namespace troupe::compute {

void executor::run(job work) {
  std::promise<void> promise;
  std::future<void> finished = promise.get_future();
  submit(priority::compute, std::move(work), [&promise](std::exception_ptr trouble) {
    if (trouble) {
      promise.set_exception(trouble);
    } else {
      promise.set_value();
    }
  });
  finished.get();
}

}  // namespace troupe::compute
