// A world with everything that can be seen in it.
#pragma once

#include "actors/world_status.hpp"

namespace troupe::actors {

inline constexpr wall_time noon{std::chrono::seconds(1'700'000'000)};

inline world_status world_to_see() {
  using std::chrono::seconds;
  world_status s;
  s.run = "demo";
  s.run_id = "00ff";
  s.version = "0.1.0";
  s.commit = "abc";
  s.backends = "cpu";
  s.model = "llama";
  s.config_digest = "d1";
  s.state = run_state::training;
  s.since = noon - seconds(60);
  s.generation = 3;
  s.plan = "2 workers, 8 virtual ranks";
  s.step = 120;
  s.steps = 1000;
  s.loss = 4.125;
  s.val_loss = 4.5;
  s.grad_norm = 0.5;
  s.lr = 3e-4;
  s.tokens_per_second = 12300;
  s.step_seconds = 0.5;
  s.utilization = 0.25;
  s.flops_per_token = 6e6;
  s.last_commit = noon - seconds(2);
  s.checkpoint = {.step = 100, .bytes = 4096, .published = noon - seconds(10)};
  for (std::uint32_t i = 0; i < 2; ++i) {
    member_status m;
    m.id = i;
    m.name = "worker-" + std::to_string(i);
    m.host = "gpu03";
    m.since = noon - seconds(60);
    m.phase = protocol::phase::computing;
    m.step = 121;
    m.threads = 4;
    m.heard = noon - std::chrono::milliseconds(100);
    m.busy_ratio = 0.75;
    m.memory_bytes[memory_kind::parameters] = 1024;
    m.restarts = i;
    s.members.push_back(m);
  }
  s.counters.steps = 20;
  s.counters.tokens = 20480;
  s.counters.step_seconds.add(0.5);
  s.counters.generations[change_cause::lost] = 2;
  s.counters.losses[loss_kind::heartbeat] = 3;
  s.counters.recovery_seconds.add(0.75);
  s.counters.unblock_seconds.add(0.25);
  s.counters.phase_seconds[step_phase::forward] = 1.5;
  s.counters.sent_bytes[lane::bulk] = 2048;
  s.counters.checkpoint_attempts = 1;
  s.counters.checkpoint_seconds[checkpoint_part::write].add(0.25);
  return s;
}

}  // namespace troupe::actors
