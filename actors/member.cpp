#include "actors/member.hpp"

namespace troupe::actors {

member::member(const member_parts& parts, const worker_settings& settings,
               const coordinator_settings& coordination, const introductions_settings& gate,
               const make_computation& make)
    : loop_(std::make_unique<loop>(parts.clock)),
      work_(make(*loop_)),
      gate_(parts.transport, parts.clock, gate) {
  around_.reset(new worker_surroundings{settings,
                                        parts.transport,
                                        gate_,
                                        *work_,
                                        parts.points,
                                        parts.clock,
                                        {coordination, parts.store, parts.records},
                                        [this](const ending& how) { ended_ = how; },
                                        kept_});
  parts.transport.start(gate_);
}

member::~member() {
  if (worker_) caf::anon_send_exit(worker_, caf::exit_reason::kill);
  worker_ = {};
  gate_.set_worker({});
  // The actors end, which use the computation; it ends next, because its jobs post to the loop.
  while (loop_->run_ready()) {
  }
  work_.reset();
  loop_.reset();
}

void member::start() {
  worker_ = spawn_worker(loop_->system(), *around_);
  gate_.set_worker(worker_);
}

bool member::turn() {
  const bool moved = around_->transport.progress();
  return loop_->run_ready() || moved;
}

void member::ask_to_stop(const std::string& why) {
  if (worker_) caf::anon_send(worker_, stop_asked{why});
}

}  // namespace troupe::actors
