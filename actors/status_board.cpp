#include "actors/status_board.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

void status_board::publish() const {
  if (publisher_) publisher_(std::make_shared<const world_status>(now_));
}

void status_board::enter(run_state s, std::string note) {
  if (now_.state != s || now_.since == wall_time{}) now_.since = clock_->wall();
  now_.state = s;
  now_.note = std::move(note);
}

void status_board::committed(const protocol::decision_record& decided, double seconds,
                             bool redone) {
  enter(run_state::training);
  world_counters& c = now_.counters;
  ++c.steps;
  c.tokens += static_cast<std::uint64_t>(decided.tokens);
  c.skipped_steps += decided.skip ? 1 : 0;
  c.redone_steps += redone ? 1 : 0;
  c.step_seconds.add(seconds);
  now_.step = decided.step;
  now_.loss = decided.loss;
  now_.grad_norm = decided.grad_norm;
  now_.lr = static_cast<double>(decided.lr);
  now_.last_commit = clock_->wall();
}

void status_board::speed(double tokens_per_second, double step_seconds, double utilization) {
  now_.tokens_per_second = tokens_per_second;
  now_.step_seconds = step_seconds;
  now_.utilization = utilization < 0 ? std::nullopt : std::optional(utilization);
}

void status_board::recovered(double unblock_seconds, double recover_seconds) {
  now_.counters.unblock_seconds.add(unblock_seconds);
  now_.counters.recovery_seconds.add(recover_seconds);
}

void status_board::checkpoint_published(std::uint64_t step, std::uint64_t bytes, double seconds) {
  now_.counters.checkpoint_seconds[checkpoint_part::write].add(seconds);
  now_.checkpoint = {.step = step, .bytes = bytes, .published = clock_->wall()};
}

void status_board::plan(std::uint64_t generation, std::string line,
                        std::vector<member_status> members) {
  const wall_time time = clock_->wall();
  for (member_status& m : members) {
    const member_status* before = member(member_id{m.id});
    slot& of = slots_[member_id{m.id}];
    if (of.life != incarnation() && of.life < m.life) ++of.restarts;
    of.life = std::max(of.life, m.life);
    of.restarts = m.restarts = std::max(m.restarts, of.restarts);
    const bool stays = before != nullptr && before->name == m.name && before->host == m.host &&
                       before->life == m.life;
    if (stays) {
      m.phase = before->phase;
      m.step = before->step;
      m.heard = before->heard;
      m.busy_ratio = before->busy_ratio;
      m.slowdown = before->slowdown;
      for (const memory_kind kind : {memory_kind::activations, memory_kind::other}) {
        m.memory_bytes[kind] = before->memory_bytes[kind];
      }
    }
    m.since = stays && before->state == m.state ? before->since : time;
  }
  std::ranges::sort(members, {}, &member_status::id);
  now_.generation = generation;
  now_.plan = std::move(line);
  now_.members = std::move(members);
}

member_status* status_board::member(member_id id) {
  const auto at = std::ranges::find(now_.members, id.value, &member_status::id);
  return at == now_.members.end() ? nullptr : &*at;
}

void status_board::member_is(member_id id, member_state s) {
  member_status* m = member(id);
  if (m == nullptr || m->state == s) return;
  m->state = s;
  m->since = clock_->wall();
}

void status_board::sent(member_id id, incarnation life, lane l, std::uint64_t bytes_since_start) {
  sender& from = senders_[id];
  if (from.life < life) from = {.life = life, .bytes = {}};
  if (life < from.life) return;  // an echo of a former life
  std::uint64_t& known = from.bytes[l];
  if (bytes_since_start <= known) return;
  now_.counters.sent_bytes[l] += bytes_since_start - known;
  known = bytes_since_start;
}

}  // namespace troupe::actors
