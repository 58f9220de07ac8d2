#include "actors/data_loader.hpp"

#include "actors/messages.hpp"

namespace troupe::actors {
namespace {

caf::behavior data_loader(caf::event_based_actor*, shared_context around) {
  return {[around](const load_step& m) {
    around->work.load(m.step, [around, step = m.step](computation::trouble trouble) {
      if (trouble) return around->fail(error_of(trouble));
      caf::anon_send(around->mail.rank, step_loaded{step});
    });
  }};
}

}  // namespace

caf::actor spawn_data_loader(caf::event_based_actor* parent, shared_context around) {
  return parent->spawn<caf::linked>(data_loader, std::move(around));
}

}  // namespace troupe::actors
