#include "actors/record_writer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/plan_text.hpp"

namespace troupe::actors {

record_writer::record_writer(monitor& told, console& screen, const clock_source& clock,
                             helper_thread& worker, post_function post,
                             record_writer_settings settings)
    : told_(told),
      screen_(screen),
      clock_(clock),
      worker_(worker),
      post_(std::move(post)),
      settings_(std::move(settings)) {}

void record_writer::tell(task what, answer then) {
  worker_.add([this, back = post_.to_loop(), what = std::move(what), then = std::move(then)] {
    status s = failed_ ? status(*failed_) : what(told_);
    if (!s) failed_ = s.failure();
    if (then) back([s, then] { then(s); });
  });
}

void record_writer::started(const protocol::plan& p, const starting_point& from) {
  plan_ = p;
  last_commit_ = clock_.now();
  tell([this, p, from](monitor& m) -> status {
    std::vector<member_status> members;
    std::uint64_t computing = 0;
    for (const protocol::plan_member& one : p.members) {
      members.push_back(settings_.member_line(p, one));
      computing += one.leaves > 0 ? 1 : 0;
    }
    const std::string line = settings_.plan_line(p);
    m.board().plan(p.number.value, line, std::move(members));
    m.board().enter(run_state::training);
    settings_.show_start(p);
    return m.started(from.step, {.number = p.number.value,
                                 .members = p.members.size(),
                                 .computing = computing,
                                 .plan_hash = plan_hash(print_plan(p)),
                                 .plan_line = line,
                                 .reason = p.reason});
  });
}

void record_writer::goes_on(const protocol::plan& p, const starting_point&, const world_change&) {
  plan_ = p;
  last_commit_ = clock_.now();
}

void record_writer::note_facts(const committed_step& step) {
  status_board& board = told_.board();
  for (const auto& [id, facts] : step.facts) {
    const protocol::plan_member* m = plan_.find(id);
    if (m == nullptr) continue;
    told_.set_peaks(m->name, facts.peak_memory, facts.activation_bytes);
    board.worked(step_phase::data, facts.data);
    board.worked(step_phase::forward, facts.forward);
    board.worked(step_phase::backward, facts.backward);
    board.worked(step_phase::reduce, facts.reduce);
    board.worked(step_phase::apply, facts.apply);
    board.worked(step_phase::wait, facts.wait);
    board.sent(id, m->life, lane::control, facts.control_bytes);
    board.sent(id, m->life, lane::bulk, facts.bulk_bytes);
    if (member_status* seen = board.member(id)) {
      seen->step = step.record.step;
      // Reading data is done beside the step, by a thread that mostly sleeps.
      const double work = facts.forward + facts.backward + facts.reduce + facts.apply;
      if (work + facts.wait > 0) seen->busy_ratio = work / (work + facts.wait);
      auto& memory = seen->memory_bytes;
      memory[memory_kind::activations] = facts.activation_bytes;
      memory[memory_kind::other] = 0;
      std::uint64_t known = 0;
      for (const std::uint64_t bytes : memory.values) known += bytes;
      if (facts.peak_memory > known) memory[memory_kind::other] = facts.peak_memory - known;
    }
  }
}

void record_writer::committed(const committed_step& step, answer then) {
  const time_since_start now = clock_.now();
  const double seconds = std::chrono::duration<double>(now - last_commit_).count();
  last_commit_ = now;
  tell(
      [this, step, seconds](monitor& m) {
        note_facts(step);
        return m.step(step.record, seconds);
      },
      std::move(then));
}

void record_writer::validated(std::uint64_t step, double loss, double tokens) {
  tell([step, loss, tokens](monitor& m) { return m.validated(step, {loss, tokens}); });
}

void record_writer::asked_to_stop(std::uint64_t step, const std::string& why) {
  tell([step, why](monitor& m) { return m.told_to_stop(step, why); });
}

void record_writer::save_begins(std::uint64_t step) {
  tell([this, step](monitor& m) {
    save_began_ = m.now();
    return m.save_begins(step);
  });
}

void record_writer::saved(std::uint64_t step, const saved_hashes& what) {
  tell([this, step, what](monitor& m) -> status {
    if (what.folder.empty()) {
      m.set_hashes(what.weights, what.state);
      screen_.event("checkpoint.enable is false: nothing was saved");
      return done{};
    }
    return m.saved(step, {what.folder, what.weights, what.state, what.bytes, what.was_there},
                   m.now() - save_began_);
  });
}

void record_writer::not_finite(std::uint64_t step, const std::string& layer) {
  tell([step, layer](monitor& m) { return m.weights_not_finite(step, layer); });
}

void record_writer::save_failed(std::uint64_t step, const error& why) {
  tell([step, why](monitor& m) -> status {
    (void)m.save_failed(step, why);  // the disk may be full; the cause goes on
    return done{};
  });
}

void record_writer::member_lost(member_id who, const std::string& how) {
  const protocol::plan_member* m = plan_.find(who);
  const std::string name = m != nullptr ? m->name : fmt::format("member {}", who.value);
  tell([who, name, how](monitor& told) -> status {
    told.board().member_is(who, member_state::lost);
    return told.member_lost(name, how);
  });
}

void record_writer::visitor_refused(const std::string& why) {
  tell([this, why](monitor&) -> status {
    screen_.event("refused somebody who wanted to join: " + why);
    return done{};
  });
}

void record_writer::finished(std::uint64_t step, exit_code code, const std::string&, answer then) {
  tell([step, code](monitor& m) { return m.finished(step, code); }, std::move(then));
}

void record_writer::heard_of(member_id who, const protocol::heartbeat& what) {
  tell([who, what](monitor& m) -> status {
    if (member_status* seen = m.board().member(who)) {
      seen->heard = m.wall();
      if (what.step > 0) seen->step = what.step;
    }
    return done{};
  });
}

}  // namespace troupe::actors
