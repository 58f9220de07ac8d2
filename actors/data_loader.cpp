#include "actors/data_loader.hpp"

#include "actors/messages.hpp"

namespace troupe::actors {
namespace {

struct loader_state {
  static inline const char* name = "data_loader";
};

caf::behavior data_loader(caf::stateful_actor<loader_state>* self, const shared_context& around) {
  guard(self, around);
  return {while_current<load_step>(around, [around](const load_step& m) {
    around->work.load(m.step, [around, step = m.step](computation::trouble trouble) {
      if (around->over) return;
      if (trouble) return around->fail(error_of(trouble));
      caf::anon_send(around->mail.rank, step_loaded{step});
    });
  })};
}

}  // namespace

caf::actor spawn_data_loader(caf::event_based_actor* parent, shared_context around) {
  return parent->spawn<caf::linked>(data_loader, std::move(around));
}

}  // namespace troupe::actors
