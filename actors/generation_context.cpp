#include "actors/generation_context.hpp"

#include <new>

namespace troupe::actors {

void lasting_facts::see(const protocol::record_notice& notice) {
  seen = notice.record.step;
  records.push_back(notice);
  std::erase_if(records, [&](const protocol::record_notice& old) {
    return old.record.step <= notice.lines && old.record.step != seen;
  });
}

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

error error_of(const char* actor, const std::exception_ptr& trouble) {
  error why = error_of(trouble);
  why.message = std::string("the actor ") + actor + " ended by an exception: " + why.message;
  return why;
}

void guard(caf::scheduled_actor* self, const shared_context& around) {
  self->set_exception_handler([self, around](std::exception_ptr& trouble) -> caf::error {
    around->fail(error_of(self->name(), trouble));
    return caf::sec::runtime_error;
  });
}

}  // namespace troupe::actors
