#include "actors/sim/liveness.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors::sim {
namespace {

using namespace std::chrono_literals;

// Between two looks at what has no moment of its own.
constexpr time_since_start look_again = 5ms;

double seconds(time_since_start t) { return std::chrono::duration<double>(t).count(); }

}  // namespace

liveness::liveness(const world& w, const invariants& points, const liveness_bounds& bounds)
    : world_(w),
      points_(points),
      bounds_(bounds),
      suspect_(worker_settings().suspect),
      evict_(worker_settings().evict) {
  slots_.resize(w.size());
}

liveness::slot& liveness::at(std::size_t who) {
  if (who >= slots_.size()) slots_.resize(who + 1);
  return slots_[who];
}

void liveness::report(const char* rule, member_id who, std::string what) {
  if (!first_) first_ = violation{rule, who, world_.lines().size(), {}, std::move(what)};
}

void liveness::disturbed(time_since_start known_after) {
  settled_ = std::max(settled_, world_.now() + known_after);
}

void liveness::struck(std::size_t who, bool silent) {
  at(who).acts = false;
  ++losses_;
  // A silent loss is known after the time of eviction; whoever has to act on it may have to wait
  // for its turn, and who collects promises waits once more for one that is silent, too.
  const bool another = settled_ > world_.now() || std::ranges::any_of(slots_, [&](const slot& s) {
                         return !s.acts && &s != &slots_[who];
                       });
  const time_since_start known =
      silent ? evict_ + suspect_ + (another ? evict_ : 0ms) : time_since_start(10ms);
  disturbed(known);
  if (world_.store().plans.empty()) return;
  const protocol::plan& plan = world_.store().plans.back();
  const member_id id(static_cast<std::uint32_t>(who));
  if (plan.find(id) == nullptr || plan.find(id)->life != world_.life(who)) return;
  duties_.push_back({world_.now(), world_.now() + known + bounds_.free, who, plan.number});
}

void liveness::back(std::size_t who) {
  at(who).acts = true;
  at(who).since = world_.now();
  ++arrivals_;  // it may have been given up meanwhile
  disturbed(suspect_);
  // Nobody has to be free of one that is there.
  std::erase_if(duties_, [&](const duty& d) { return d.who == who; });
}

void liveness::started(std::size_t who) {
  at(who) = {.acts = true, .wants_in = true, .ended = false, .since = world_.now()};
  ++arrivals_;
  disturbed(0ms);
}

void liveness::leaves(std::size_t who) {
  at(who).wants_in = false;
  ++losses_;
  disturbed(0ms);
}

// Has every block of the newest plan a holder that acts?
bool liveness::in_reach() const {
  return world_.newest_plan_is_covered([this](std::size_t i) { return slots_[i].acts; });
}

void liveness::look() {
  const time_since_start now = world_.now();
  if (world_.lines().size() != lines_) {
    lines_ = world_.lines().size();
    last_commit_ = now;
  }
  // A further disturbance, as the loss of whoever had to act, puts them off.
  std::erase_if(duties_, [&](const duty& d) {
    if (std::max(d.due, settled_ + bounds_.free) > now) return false;
    check_free(d);
    return true;
  });
  if (now < next_look_) return;
  next_look_ = now + look_again;
  at(world_.size() - 1);
  look_at_ended();
  if (world_.somebody_finished() || world_.store().plans.empty()) return;
  if (!in_reach()) return check_waiting();
  if (waiting_since_) disturbed(0ms);
  waiting_since_.reset();
  check_progress();
  check_copies();
  check_members();
}

void liveness::check_free(const duty& d) {
  if (world_.somebody_finished()) return;
  const protocol::plan& plan = world_.store().plans.at(d.of.value);
  for (const protocol::plan_member& m : plan.members) {
    const slot& s = at(m.id.value);
    if (m.id.value == d.who || !s.acts || s.since > d.begun || !world_.lives(m)) continue;
    ++checks_;
    if (points_.has_left(m.id, d.of)) continue;
    report("L-1", m.id,
           fmt::format("member {} was lost {:.3f} s ago, and this one still waits in plan {}",
                       d.who, seconds(world_.now() - d.begun), d.of.value));
  }
}

void liveness::check_progress() {
  ++checks_;
  const time_since_start from = std::max(settled_, last_commit_);
  if (world_.now() - from <= bounds_.step) return;
  report("L-2", {},
         fmt::format("every block is in reach, and no step was committed for {:.3f} s",
                     seconds(world_.now() - from)));
}

void liveness::check_waiting() {
  // Somebody of the plan has to be there to wait.
  const bool any = std::ranges::any_of(world_.store().plans.back().members,
                                       [this](const protocol::plan_member& m) {
                                         return slots_[m.id.value].acts && world_.lives(m);
                                       });
  if (!any) return waiting_since_.reset();
  std::size_t said = 0;
  for (std::size_t i = 0; i < world_.size(); ++i) said += world_.records(i).waits.size();
  if (!waiting_since_) {
    waiting_since_ = world_.now();
    said_before_ = said;
  }
  // Before it is known, and asked for, what is not there.
  const time_since_start known = *waiting_since_ + 2 * evict_ + suspect_;
  if (world_.now() <= known + look_again) turns_before_ = world_.turns();
  if (world_.now() < known + 1s) return;
  ++checks_;
  if (said == said_before_) {
    return report("L-6", {}, "blocks are out of reach, and nobody says what is waited for");
  }
  const double turns = static_cast<double>(world_.turns() - turns_before_);
  const double allowed = bounds_.turns_while_waiting * static_cast<double>(world_.size()) *
                         seconds(world_.now() - known);
  if (turns <= allowed) return;
  report("L-6", {},
         fmt::format("{:.0f} turns in {:.3f} s in which there is nothing to do but to wait", turns,
                     seconds(world_.now() - known)));
}

void liveness::check_copies() {
  if (world_.now() - settled_ <= bounds_.redundancy) return;
  ++checks_;
  const protocol::plan& plan = world_.store().plans.back();
  const std::size_t wanted = std::min<std::size_t>(plan.members.size(), world_.backups() + 1u);
  for (const protocol::placed_blocks& part : plan.placement) {
    if (part.backups.size() + 1 >= wanted) continue;
    return report("L-3", part.primary,
                  fmt::format("{} of {} copies, {:.3f} s after the last disturbance",
                              part.backups.size() + 1, wanted, seconds(world_.now() - settled_)));
  }
}

void liveness::check_members() {
  const protocol::plan& plan = world_.store().plans.back();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const slot& s = slots_[i];
    if (!s.acts || !s.wants_in || !world_.lives(i)) continue;
    if (world_.now() - std::max(settled_, s.since) <= bounds_.joining) continue;
    ++checks_;
    const member_id id(static_cast<std::uint32_t>(i));
    const protocol::plan_member* m = plan.find(id);
    if (m != nullptr && m->life == world_.life(i)) continue;
    report("L-4", id,
           fmt::format("it is well, and not in plan {} after {:.3f} s", plan.number.value,
                       seconds(world_.now() - std::max(settled_, s.since))));
  }
}

void liveness::check_end() {
  at(world_.size() - 1);
  look_at_ended();
  const std::size_t plans = world_.store().plans.size();
  // A newcomer whose link is reset between its wish and the plan has cost a plan.
  const std::size_t most = 1 + bounds_.plans_for_a_loss * losses_ +
                           bounds_.plans_for_a_newcomer * arrivals_ + world_.resets();
  ++checks_;
  if (plans > most) {
    report("L-5", {},
           fmt::format("{} plans for {} losses and {} arrivals", plans, losses_, arrivals_));
  }
}

void liveness::look_at_ended() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slot& s = slots_[i];
    if (s.ended || !world_.ended(i) || world_.killed(i)) continue;
    s.ended = true;
    ++checks_;
    const std::size_t open = world_.links_at_end(i);
    if (open == 0) continue;
    report("L-7", member_id(static_cast<std::uint32_t>(i)),
           fmt::format("it has ended, and {} of its connections are open", open));
  }
}

}  // namespace troupe::actors::sim
