#include "actors/launch_outcome.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "config/base/error.hpp"

namespace troupe::actors {
namespace {

constexpr int ok = static_cast<int>(exit_code::ok);
constexpr int too_few = static_cast<int>(exit_code::too_few);
constexpr int interrupted = static_cast<int>(exit_code::interrupted);

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& n : names) text += (text.empty() ? "" : ", ") + n;
  return text;
}

double in_seconds(time_since_start t) { return std::chrono::duration<double>(t).count(); }

std::string short_end(worker_end end) {
  if (!end.by_signal) return fmt::format("ended with exit code {}", end.number);
  const char* const name = sigabbrev_np(end.number);
  return name != nullptr ? fmt::format("ended by SIG{}", name)
                         : fmt::format("ended by signal {}", end.number);
}

}  // namespace

launch_outcome::launch_outcome(std::vector<launched_worker> workers, std::string host,
                               launch_patience patience, const restart_rule& restarts)
    : host_(std::move(host)), patience_(patience), restarts_(restarts), running_(workers.size()) {
  for (launched_worker& w : workers) {
    workers_.push_back({.about = std::move(w), .budget = restart_budget(restarts)});
  }
}

std::vector<launch_outcome::order> launch_outcome::all_running(int signal) const {
  std::vector<order> orders;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].running) orders.push_back({i, signal});
  }
  return orders;
}

std::vector<launch_outcome::order> launch_outcome::notice(int signal) {
  noticed_ = true;
  for (state& w : workers_) w.restart_at.reset();
  const bool again = signal == SIGINT && interrupted_;
  interrupted_ |= signal == SIGINT;
  leave_now_ |= again;
  return all_running(again ? SIGKILL : SIGTERM);
}

void launch_outcome::in_world(const std::vector<standing>& newest_plan) {
  ensure(newest_plan.size() == workers_.size(), "it was not said of every worker where it stands");
  for (std::size_t i = 0; i < workers_.size(); ++i) workers_[i].in_plan = newest_plan[i];
}

// A worker may be told to leave before it has learned to take the notice.
launch_outcome::manner launch_outcome::manner_of(worker_end end) const {
  if (end.by_signal) {
    return noticed_ && end.number == SIGTERM ? manner::orderly : manner::curable;
  }
  if (end.number == ok || end.number == interrupted) return manner::orderly;
  const auto code = static_cast<exit_code>(end.number);
  const bool cured_by_a_new_process =
      code == exit_code::too_few || code == exit_code::defect || code == exit_code::io;
  return cured_by_a_new_process ? manner::curable : manner::lasting;
}

bool launch_outcome::member_runs() const {
  return std::ranges::any_of(workers_,
                             [](const state& w) { return w.running && w.in_plan == standing::in; });
}

// A loss is made up for by a successor that the newest plan names, and by a newest plan that does
// without.
void launch_outcome::forget_what_was_made_up_for() {
  const bool goes_on = member_runs();
  std::erase_if(ends_, [&](const past_end& e) {
    const state& now = workers_[e.worker];
    if (e.how == manner::orderly) return false;
    if (now.in_plan == standing::out) return goes_on;
    return now.in_plan == standing::in && now.running && now.replaces;
  });
}

void launch_outcome::ended(std::size_t worker, worker_end end, time_since_start now) {
  state& w = workers_.at(worker);
  ensure(w.running, "a worker process ended twice");
  forget_what_was_made_up_for();
  w.running = false;
  w.last_end = end;
  --running_;

  const manner how = manner_of(end);
  const bool goes_on = member_runs();
  // With a plan that names it, it ends with all others.
  const bool with_all = how == manner::orderly && w.in_plan == standing::in;
  if (std::exchange(w.leaving, false) && goes_on && !with_all) {
    return left(w, {worker, w.about.process, end, how, w.told, true, !ending_ && !noticed_}, now);
  }
  // Who left by a plan, or was refused: neither is needed by those who are in.
  const bool outlived = goes_on && ((how == manner::orderly && w.in_plan != standing::in) ||
                                    (how == manner::lasting && is_useless(w)));
  ends_.push_back({worker, w.about.process, end, how, w.told, outlived, !ending_ && !noticed_});
  const std::string what =
      fmt::format("{} (process {}) {}", w.about.name, w.about.process, short_end(end));
  if (outlived && how == manner::lasting && !w.told) {
    news_.push_back(what +
                    "; it is not started again, as that would only be repeated; the others "
                    "go on");
  }
  if (outlived || w.told) return;
  if (how == manner::orderly) return begin_to_end(now, patience_.to_finish);
  if (how == manner::lasting || !goes_on) return begin_to_end(now, patience_.to_notice);
  if (ending_ || noticed_) return;
  // A world that ends does so one worker after the other: who ended with 69 may not be the last.
  const bool calm = !end.by_signal && end.number == too_few;
  plan_restart(worker, what, now, calm);
}

// It was not needed any more, however it ended.
void launch_outcome::left(state& w, const past_end& how, time_since_start now) {
  ends_.push_back(how);
  if (ending_ || noticed_) return;
  const bool in_order = !how.end.by_signal && how.end.number == ok;
  news_.push_back(fmt::format("{} (process {}) {}", w.about.name, how.process,
                              in_order ? std::string("has left")
                                       : short_end(how.end) + " on its way out; it is not "
                                                              "started again for that"));
  if (!w.wanted) return;
  w.ordered = true;
  w.restart_at = now;
}

void launch_outcome::plan_restart(std::size_t worker, const std::string& what, time_since_start now,
                                  bool calm) {
  state& w = workers_[worker];
  w.restart_at = w.budget.take(now, calm);
  if (!w.restart_at) {
    news_.push_back(fmt::format(
        "{}; it is not started again: {} allowed by "
        "fault_tolerance.max_restarts; the others go on",
        what, w.budget.taken() == 0 ? "no restart is" : w.budget.words() + ", no more are"));
  } else if (*w.restart_at - now >= std::chrono::seconds(1)) {
    news_.push_back(
        fmt::format("{}; it is started again in {:.1f} s", what, in_seconds(*w.restart_at - now)));
  }
}

std::vector<std::size_t> launch_outcome::restarts_due(time_since_start now) const {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].restart_at && *workers_[i].restart_at <= now) all.push_back(i);
  }
  return all;
}

void launch_outcome::restarted(std::size_t worker, int process) {
  state& w = workers_.at(worker);
  ensure(!w.running && w.restart_at, "a worker was started again that was not to be");
  if (std::exchange(w.ordered, false)) {
    news_.push_back(fmt::format("{} started as process {}", w.about.name, process));
  } else {
    news_.push_back(fmt::format("{} (process {}) {}; started again as process {} ({})",
                                w.about.name, w.about.process, short_end(*w.last_end), process,
                                w.budget.words()));
  }
  w.restart_at.reset();
  w.about.process = process;
  w.running = w.replaces = true;
  w.in_plan = standing::in;
  ++running_;
}

void launch_outcome::not_restarted(std::size_t worker, const std::string& why,
                                   time_since_start now) {
  const std::string what =
      fmt::format("{} could not be started again: {}", workers_.at(worker).about.name, why);
  const std::size_t before = news_.size();
  plan_restart(worker, what, now, true);
  if (news_.size() == before) news_.push_back(what);
}

// --- what a person asked for ---

std::vector<slot_now> launch_outcome::slots() const {
  std::vector<slot_now> all;
  for (const state& w : workers_) {
    all.push_back({.name = w.about.name,
                   .wanted = w.wanted,
                   .running = w.running,
                   .leaving = w.leaving,
                   .waits = w.restart_at.has_value()});
  }
  return all;
}

void launch_outcome::add(const launched_worker& worker) {
  workers_.push_back({.about = worker,
                      .budget = restart_budget(restarts_),
                      .running = false,
                      .in_plan = standing::out,
                      .wanted = false});
}

std::vector<std::size_t> launch_outcome::take_on(const world_order& asked, time_since_start now) {
  std::vector<std::size_t> to_tell;
  for (const std::size_t i : asked.leave) {
    state& w = workers_.at(i);
    w.wanted = false;
    w.restart_at.reset();
    if (w.running && !std::exchange(w.leaving, true)) to_tell.push_back(i);
  }
  for (const std::size_t i : asked.start) {
    state& w = workers_.at(i);
    w.wanted = true;
    if (w.running) continue;  // it is followed once it has left
    w.budget = restart_budget(restarts_);
    w.ordered = true;
    w.restart_at = now;
  }
  return to_tell;
}

std::vector<std::string> launch_outcome::take_news() { return std::exchange(news_, {}); }

// --- the end ---

void launch_outcome::begin_to_end(time_since_start now, time_since_start patience) {
  for (state& w : workers_) w.restart_at.reset();
  if (!ending_) ending_ = ending{now, now + patience};
  ending_->tell_at = std::min(ending_->tell_at, now + patience);
}

// Who is not in the world yet has nothing to finish.
time_since_start launch_outcome::tell_at(const state& w) const {
  return is_useless(w) ? ending_->since : ending_->tell_at;
}

std::vector<launch_outcome::order> launch_outcome::due(time_since_start now) {
  std::vector<order> orders;
  if (!ending_) return orders;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    state& w = workers_[i];
    const bool kill = now >= tell_at(w) + patience_.to_leave;
    if (!w.running || now < tell_at(w) || (kill ? w.killed : w.told)) continue;
    w.told = true;
    w.killed |= kill;
    orders.push_back({i, kill ? SIGKILL : SIGTERM});
  }
  return orders;
}

std::optional<time_since_start> launch_outcome::next_due() const {
  std::optional<time_since_start> first;
  const auto note = [&](time_since_start at) { first = std::min(first.value_or(at), at); };
  for (const state& w : workers_) {
    if (w.restart_at) note(*w.restart_at);
    if (!ending_ || !w.running || w.killed) continue;
    note(w.told ? tell_at(w) + patience_.to_leave : tell_at(w));
  }
  return first;
}

// Somebody was there to the end, so what was lost on the way did not end the run.
bool launch_outcome::is_orderly() const {
  return std::ranges::any_of(
      ends_, [&](const past_end& e) { return !e.told && !e.outlived && e.how == manner::orderly; });
}

// A reason that stays comes before all others: the same command would only find it again.
const launch_outcome::past_end* launch_outcome::first_cause() const {
  const past_end *own = nullptr, *victim = nullptr;
  for (const past_end& e : ends_) {
    if (!went_wrong(e)) continue;
    if (e.how == manner::lasting) return &e;
    const past_end*& first = e.end.by_signal || e.end.number != too_few ? own : victim;
    if (first == nullptr) first = &e;
  }
  if (is_orderly()) return nullptr;
  return own != nullptr ? own : victim;
}

int launch_outcome::code() const {
  ensure(over(), "the outcome of a run was asked for before its workers had ended");
  if (leave_now_) return interrupted;
  if (const past_end* cause = first_cause()) {
    return cause->end.by_signal ? too_few : cause->end.number;
  }
  const bool all_done = std::ranges::all_of(ends_, [&](const past_end& e) {
    return e.told || e.outlived || went_wrong(e) || (!e.end.by_signal && e.end.number == ok);
  });
  return all_done && is_orderly() ? ok : interrupted;
}

std::string launch_outcome::who(const past_end& e) const {
  return fmt::format("{} on {} (process {})", workers_[e.worker].about.name, host_, e.process);
}

std::string launch_outcome::describe_end(const past_end& e) const {
  const std::string& log = workers_[e.worker].about.log;
  if (!e.end.by_signal) {
    return fmt::format("{} ended with exit code {}; its reason stands above{}", who(e),
                       e.end.number, log.empty() ? "" : fmt::format(" and in {}", log));
  }
  return fmt::format("{} was killed by signal {} ({}), as its launcher saw from its end{}", who(e),
                     e.end.number, strsignal(e.end.number),
                     log.empty() ? "" : fmt::format("; its log is {}", log));
}

std::string launch_outcome::last_words() const {
  if (leave_now_) {
    return "left at once as asked, without a save; the same command resumes from the newest "
           "checkpoint";
  }
  const past_end* cause = first_cause();
  if (workers_.size() == 1 && (cause == nullptr || !cause->end.by_signal)) return "";
  std::vector<std::string> lines, followed, told;
  for (const past_end& e : ends_) {
    const state& w = workers_[e.worker];
    if (&e == cause) continue;
    if (e.told && !is_useless(w)) told.push_back(w.about.name);
    if (!went_wrong(e)) continue;
    if (cause != nullptr) {
      if (std::ranges::find(followed, w.about.name) == followed.end() &&
          e.worker != cause->worker) {
        followed.push_back(w.about.name);
      }
    } else if (!e.in_time) {
      lines.push_back(who(e) + " " + short_end(e.end) +
                      " while the run was ending; the others finished without it");
    }
  }
  if (cause != nullptr) lines.push_back(describe_end(*cause));
  if (!followed.empty()) lines.push_back("stopped because of it: " + join(followed));
  if (!told.empty()) {
    lines.push_back(fmt::format("did not stop by themselves within {} s and were told to: {}",
                                in_seconds(ending_->tell_at - ending_->since), join(told)));
  }
  if (cause != nullptr && code() == too_few) {
    lines.emplace_back(
        "nothing that was saved is lost; the same command resumes from the newest checkpoint");
  }
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

}  // namespace troupe::actors
