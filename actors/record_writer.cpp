#include "actors/record_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "actors/plan_text.hpp"

namespace troupe::actors {

namespace {

// Between two snapshots that only heartbeats gave reason for.
constexpr std::chrono::milliseconds shown_again{250};

}  // namespace

record_writer::record_writer(std::optional<monitor> opened, console& screen,
                             const clock_source& clock, helper_thread& worker, post_function post,
                             record_writer_settings settings)
    : screen_(screen),
      clock_(clock),
      worker_(worker),
      post_(std::move(post)),
      settings_(std::move(settings)),
      rests_(!opened),
      told_(std::move(opened)) {}

// --- the role ---

void record_writer::tell(task what, answer then) {
  if (rests_) return;
  worker_.add([this, back = post_.to_loop(), what = std::move(what), then = std::move(then)] {
    if (!failed_) {
      if (!told_) return;  // the role went to somebody else in the meantime
      const status s = what(*told_);
      if (!told_) return;  // that was found out just now
      if (!s) failed_ = s.failure();
    }
    const status s = failed_ ? status(*failed_) : status(done{});
    if (then) back([s, then] { then(s); });
  });
}

// A monitor that is open serves on, unless somebody else has kept the records since.
status record_writer::open_records() {
  if (told_) {
    const result<bool> mine = told_->is_mine();
    if (!mine) return mine.failure();
    if (*mine) return done{};
    told_.reset();
  }
  result<monitor> opened = settings_.open();
  if (!opened) return opened.failure();
  told_.emplace(std::move(*opened));
  return done{};
}

void record_writer::close_records() {
  told_.reset();
  if (settings_.rest) settings_.rest();
}

// A store that does not answer takes no lines either, so that is left to the write.
bool record_writer::has_role() {
  if (!settings_.still_ours) return true;
  const result<bool> ours = settings_.still_ours(recorded_plan_);
  return !ours || *ours;
}

void record_writer::rests() {
  rests_ = true;
  worker_.add([this] { close_records(); });
}

monitor* record_writer::last_words() {
  // A start that came to nothing before its first plan is told by whoever opened the records.
  if (!told_ || (!recorded_plan_.run_id.empty() && !has_role())) return nullptr;
  return &*told_;
}

world_facts record_writer::facts_of(const protocol::plan& p) const {
  world_facts facts;
  facts.number = p.number.value;
  facts.members = p.members.size();
  facts.computing = 0;
  for (const protocol::plan_member& one : p.members) facts.computing += one.leaves > 0 ? 1 : 0;
  facts.plan_hash = plan_hash(print_plan(p));
  facts.plan_line = settings_.plan_line(p);
  facts.reason = p.reason;
  if (const protocol::plan_member* m = p.find(p.coordinator)) facts.coordinator = m->name;
  return facts;
}

status record_writer::take_plan(const protocol::plan& p) {
  if (status opened = open_records(); !opened) return opened.failure();
  recorded_plan_ = p;
  last_line_ = clock_.now();
  std::vector<member_status> members;
  for (const protocol::plan_member& one : p.members) {
    members.push_back(settings_.member_line(p, one));
  }
  told_->board().plan(p.number.value, settings_.plan_line(p), std::move(members));
  return done{};
}

void record_writer::started(const protocol::plan& p, const starting_point& from) {
  plan_ = p;
  rests_ = false;
  last_commit_ = clock_.now();
  worker_.add([this, p, from] {
    if (failed_) return;
    status s = take_plan(p);
    if (s) {
      told_->board().enter(run_state::training);
      settings_.show_start(p);
      s = told_->started(from.step, facts_of(p));
    }
    if (!s) failed_ = s.failure();
  });
}

void record_writer::goes_on(const protocol::plan& p, const starting_point& from,
                            const world_change& how) {
  plan_ = p;
  rests_ = false;
  last_commit_ = clock_.now();
  worker_.add([this, p, from, how] {
    if (failed_) return;
    status s = take_plan(p);
    if (s) s = told_->goes_on(from.step, facts_of(p), how);
    if (!s) failed_ = s.failure();
  });
}

// --- what is told ---

void record_writer::note_facts(const committed_step& step) {
  status_board& board = told_->board();
  for (const auto& [id, facts] : step.facts) {
    const protocol::plan_member* m = recorded_plan_.find(id);
    if (m == nullptr) continue;
    told_->set_peaks(m->name, facts.peak_memory, facts.activation_bytes);
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

// Steps of an earlier plan, told again, have no facts.
status record_writer::note_speeds(const committed_step& step) {
  if (step.facts.empty() || step.plan != recorded_plan_.number) return done{};
  for (const straggler& one : speeds_.step(recorded_plan_, step.facts)) {
    const protocol::plan_member* m = recorded_plan_.find(one.who);
    if (status said = told_->straggles(step.record.step, m->name, one); !said) {
      return said.failure();
    }
  }
  for (member_status& seen : told_->board().facts().members) {
    seen.slowdown = speeds_.ratio(member_id{seen.id});
  }
  return done{};
}

void record_writer::committed(const committed_step& step, answer then) {
  const time_since_start now = clock_.now();
  const double seconds = std::chrono::duration<double>(now - last_commit_).count();
  last_commit_ = now;
  tell(
      [this, step, seconds](monitor& m) -> status {
        const time_since_start before = std::exchange(last_line_, clock_.now());
        if (last_line_ - before > settings_.longest_pause && !has_role()) {
          screen_.event(fmt::format(
              "step {} is not recorded here: a plan after number {} gave the records to another "
              "process while this one stood still",
              step.record.step, recorded_plan_.number.value));
          close_records();
          return done{};
        }
        note_facts(step);
        if (status said = m.step(step, seconds); !said) return said.failure();
        return note_speeds(step);
      },
      std::move(then));
}

void record_writer::validated(std::uint64_t step, double loss, double tokens) {
  tell([step, loss, tokens](monitor& m) { return m.validated(step, {loss, tokens}); });
}

void record_writer::asked_to_stop(std::uint64_t step, const std::string& why) {
  tell([step, why](monitor& m) { return m.told_to_stop(step, why); });
}

void record_writer::world_asked_for(const std::string& asked, std::uint64_t from,
                                    std::uint64_t to) {
  tell([asked, from, to](monitor& m) { return m.world_asked_for(asked, from, to); });
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
  tell([who, name, how, when = clock_.now()](monitor& told) -> status {
    told.board().member_is(who, member_state::lost);
    return told.member_lost(name, how, when);
  });
}

void record_writer::visitor_refused(const std::string& why) {
  tell([this, why](monitor&) -> status {
    screen_.event("refused somebody who wanted to join: " + why);
    return done{};
  });
}

// Also where somebody else keeps the records: whoever collects may not coordinate yet.
void record_writer::change_waits(const std::string& why) {
  worker_.add([this, why] { screen_.event("waiting for the next plan: " + why); });
}

void record_writer::marked(const world_change::mark& what) {
  tell([what](monitor& m) -> status {
    m.marked(what);
    return done{};
  });
}

void record_writer::waits_for_members(const std::string& why) {
  tell([why](monitor& m) { return m.waits_for_members(why); });
}

void record_writer::members_are_here(double seconds) {
  tell([seconds](monitor& m) { return m.members_are_here(seconds); });
}

void record_writer::finished(std::uint64_t step, exit_code code, const std::string&, answer then) {
  tell([step, code](monitor& m) { return m.finished(step, code); }, std::move(then));
}

void record_writer::heard_of(member_id who, const protocol::heartbeat& what) {
  tell([this, who, what, when = clock_.now()](monitor& m) -> status {
    member_status* const seen = m.board().member(who);
    if (seen == nullptr) return done{};
    seen->heard = m.wall();
    seen->phase = what.doing;
    if (what.step > 0) seen->step = what.step;
    m.heard_of(seen->name, when);
    if (when - last_shown_ < shown_again) return done{};
    last_shown_ = when;
    m.board().publish();
    return done{};
  });
}

}  // namespace troupe::actors
