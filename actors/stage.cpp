#include "actors/stage.hpp"

#include "actors/exchange.hpp"
#include "actors/messages.hpp"

namespace troupe::actors {
namespace {

struct stage_state {
  static inline const char* name = "stage";

  shared_context around;
  std::vector<tree_node> nodes;  // that this member completes
  std::uint64_t step = 0;        // being computed

  // All of this layer's nodes of one source are there: to their blocks' primaries.
  void send_nodes(std::uint32_t layer, std::uint8_t source) {
    const std::vector<block_shape>& blocks = around->work.shape().layers.at(layer);
    for (std::uint32_t b = 0; b < blocks.size(); ++b) {
      if (source >= blocks[b].sources.size()) continue;
      const member_id primary = around->plan.holders_of({layer, b}).primary;
      for (const tree_node& node : nodes) {
        const node_key key{{layer, b}, source, node};
        if (primary == around->self) {
          caf::anon_send(around->mail.primary_shards.at(layer), local_node{step, key});
        } else {
          around->bulk.send_node(primary, {step, key});
        }
      }
    }
    around->reached(protocol_point::partial_sent, step);
  }

  void open(std::uint32_t layer) {
    around->points.layer_opened(around->self, step, layer);
    around->work.open(layer);
  }
};

caf::behavior stage_actor(caf::stateful_actor<stage_state>* self, shared_context around) {
  guard(self, around);
  self->state.around = around;
  self->state.nodes = protocol::nodes_of(around->plan, around->me());
  const caf::actor me = caf::actor_cast<caf::actor>(self);
  return {
      while_current<compute_step>(
          around,
          [self, me](const compute_step& m) {
            stage_state& s = self->state;
            s.step = m.step;
            computation::step_events events;
            events.micro_batch_done = [me, step = m.step] {
              caf::anon_send(me, micro_batch_complete{step});
            };
            events.nodes_ready = [me, step = m.step](std::uint32_t layer, std::uint8_t source) {
              caf::anon_send(me, nodes_complete{step, layer, source});
            };
            events.finished = [ctx = s.around, step = m.step](computation::trouble trouble,
                                                              std::vector<leaf_loss> losses) {
              if (ctx->over) return;
              // Cancelled or failed: the rank knows whether it asked for it.
              const bool whole = !trouble;
              if (!whole) {
                caf::anon_send(ctx->mail.rank, job_failed{error_of(trouble)});
                return;
              }
              caf::anon_send(ctx->mail.rank, step_computed{step, std::move(losses)});
            };
            s.around->work.start(m.step, std::move(events));
            for (const std::uint32_t layer : m.open) s.open(layer);
          }),
      while_current<open_layer>(around, [self](const open_layer& m) { self->state.open(m.layer); }),
      while_current<nodes_complete>(around,
                                    [self](const nodes_complete& m) {
                                      if (m.step == self->state.step) {
                                        self->state.send_nodes(m.layer, m.source);
                                      }
                                    }),
      while_current<micro_batch_complete>(around,
                                          [self](const micro_batch_complete& m) {
                                            self->state.around->reached(
                                                protocol_point::microbatch_done, m.step);
                                          }),
      while_current<cancel_step>(around,
                                 [self](const cancel_step&) { self->state.around->work.cancel(); }),
  };
}

}  // namespace

caf::actor spawn_stage(caf::event_based_actor* parent, shared_context around) {
  return parent->spawn<caf::linked>(stage_actor, std::move(around));
}

}  // namespace troupe::actors
