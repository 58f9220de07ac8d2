#include "compute/executor.hpp"

#include <future>
#include <memory>

namespace troupe::compute {

void executor::run(job work) {
  // Shared: set_value may still be at work inside the promise when the waiter goes on.
  const auto promise = std::make_shared<std::promise<void>>();
  std::future<void> finished = promise->get_future();
  submit(priority::compute, std::move(work), [promise](std::exception_ptr trouble) {
    if (trouble) {
      promise->set_exception(trouble);
    } else {
      promise->set_value();
    }
  });
  finished.get();
}

}  // namespace troupe::compute
