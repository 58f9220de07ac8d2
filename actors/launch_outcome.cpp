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

}  // namespace

launch_outcome::launch_outcome(std::vector<launched_worker> workers, std::string host,
                               launch_patience patience)
    : host_(std::move(host)), patience_(patience), running_(workers.size()) {
  for (launched_worker& w : workers) workers_.push_back({.about = std::move(w), .end = {}});
}

std::vector<launch_outcome::order> launch_outcome::all_running(int signal) const {
  std::vector<order> orders;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (!workers_[i].end) orders.push_back({i, signal});
  }
  return orders;
}

std::vector<launch_outcome::order> launch_outcome::notice(int signal) {
  noticed_ = true;
  const bool again = signal == SIGINT && interrupted_;
  interrupted_ |= signal == SIGINT;
  leave_now_ |= again;
  return all_running(again ? SIGKILL : SIGTERM);
}

// A worker may be told to leave before it has learned to take the notice.
bool launch_outcome::went_wrong(const state& w) const {
  if (!w.end || w.told) return false;
  if (w.end->by_signal) return !(noticed_ && w.end->number == SIGTERM);
  return w.end->number != ok && w.end->number != interrupted;
}

void launch_outcome::ended(std::size_t worker, worker_end end, time_since_start now) {
  state& w = workers_.at(worker);
  ensure(!w.end, "a worker process ended twice");
  w.end = end;
  in_order_.push_back(worker);
  --running_;
  if (went_wrong(w) && !trouble_since_) trouble_since_ = now;
}

std::vector<launch_outcome::order> launch_outcome::due(time_since_start now) {
  if (!trouble_since_ || over()) return {};
  const bool kill = now >= *trouble_since_ + patience_.to_notice + patience_.to_leave;
  if (!kill && now < *trouble_since_ + patience_.to_notice) return {};
  std::vector<order> orders;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    state& w = workers_[i];
    if (w.end || (kill ? w.killed : w.told)) continue;
    w.told = true;
    w.killed |= kill;
    orders.push_back({i, kill ? SIGKILL : SIGTERM});
  }
  return orders;
}

std::optional<time_since_start> launch_outcome::next_due() const {
  if (!trouble_since_) return std::nullopt;
  const auto waits = [&](bool state::*done) {
    return std::ranges::any_of(workers_, [&](const state& w) { return !w.end && !(w.*done); });
  };
  if (waits(&state::told)) return *trouble_since_ + patience_.to_notice;
  if (waits(&state::killed)) return *trouble_since_ + patience_.to_notice + patience_.to_leave;
  return std::nullopt;
}

const launch_outcome::state* launch_outcome::first_cause() const {
  const state* victim = nullptr;
  for (const std::size_t i : in_order_) {
    const state& w = workers_[i];
    if (!went_wrong(w)) continue;
    if (w.end->by_signal || w.end->number != too_few) return &w;
    if (victim == nullptr) victim = &w;
  }
  return victim;
}

int launch_outcome::code() const {
  ensure(over(), "the outcome of a run was asked for before its workers had ended");
  if (leave_now_) return interrupted;
  if (const state* cause = first_cause())
    return cause->end->by_signal ? too_few : cause->end->number;
  const bool all_done = std::ranges::all_of(
      workers_, [](const state& w) { return !w.end->by_signal && w.end->number == ok; });
  return all_done ? ok : interrupted;
}

std::string launch_outcome::describe_end(const state& w) const {
  const std::string who =
      fmt::format("{} on {} (process {})", w.about.name, host_, w.about.process);
  const std::string log = w.about.log.empty() ? "" : fmt::format(" and in {}", w.about.log);
  if (!w.end->by_signal) {
    return fmt::format("{} ended with exit code {}; its reason stands above{}", who, w.end->number,
                       log);
  }
  return fmt::format("{} was killed by signal {} ({}), as its launcher saw from its end{}", who,
                     w.end->number, strsignal(w.end->number),
                     w.about.log.empty() ? "" : fmt::format("; its log is {}", w.about.log));
}

std::string launch_outcome::last_words() const {
  if (leave_now_) {
    return "left at once as asked, without a save; the same command resumes from the newest "
           "checkpoint";
  }
  const state* cause = first_cause();
  if (cause == nullptr || (workers_.size() == 1 && !cause->end->by_signal)) return "";
  std::vector<std::string> followed, told;
  for (const std::size_t i : in_order_) {
    const state& w = workers_[i];
    if (&w == cause) continue;
    if (w.told) told.push_back(w.about.name);
    if (went_wrong(w)) followed.push_back(w.about.name);
  }
  std::string text = describe_end(*cause);
  if (!followed.empty()) text += fmt::format("\nstopped because of it: {}", join(followed));
  if (!told.empty()) {
    text += fmt::format("\ndid not stop by themselves within {} s and were told to: {}",
                        std::chrono::duration<double>(patience_.to_notice).count(), join(told));
  }
  if (code() == too_few) {
    text += "\nnothing that was saved is lost; the same command resumes from the newest checkpoint";
  }
  return text;
}

}  // namespace troupe::actors
