#include "actors/member.hpp"

namespace troupe::actors {

member::member(const member_settings& settings, const std::function<member_outside(loop&)>& make)
    : loop_(std::make_unique<loop>(settings.clock)),
      gate_(settings.transport, settings.clock, settings.gate) {
  member_outside outside = make(*loop_);
  work_ = std::move(outside.work);
  around_.reset(new worker_surroundings{settings.worker,
                                        settings.transport,
                                        gate_,
                                        *work_,
                                        settings.points,
                                        settings.clock,
                                        {settings.coordination, outside.store, outside.records},
                                        [this](const ending& how) { ended_ = how; },
                                        kept_});
  settings.transport.start(gate_);
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

void member::ask_to_stop(const std::string& why, bool whole_run) {
  if (worker_) caf::anon_send(worker_, stop_asked{why, whole_run, false});
}

void member::ask_to_leave(const std::string& why) {
  if (worker_) caf::anon_send(worker_, stop_asked{why, false, true});
}

}  // namespace troupe::actors
