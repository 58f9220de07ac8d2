#include "actors/generation_context.hpp"

#include <new>

namespace troupe::actors {

error error_of(const std::exception_ptr& trouble) {
  try {
    std::rethrow_exception(trouble);
  } catch (const std::bad_alloc&) {
    return {exit_code::too_few,
            "out of memory; try a smaller training.micro_batch_size or more workers"};
  } catch (const std::exception& e) {
    return {exit_code::defect, e.what()};
  } catch (...) {
    return {exit_code::defect, "an exception that is none of std::exception's"};
  }
}

}  // namespace troupe::actors
