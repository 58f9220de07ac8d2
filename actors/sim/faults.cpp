#include "actors/sim/faults.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <optional>
#include "config/base/mixing.hpp"

namespace troupe::actors::sim {
namespace {

using namespace std::chrono_literals;

// A process that a launcher starts again needs about that long.
constexpr std::chrono::nanoseconds restart_pause = 30ms;

}  // namespace

std::vector<fault> faults_from_seed(std::uint64_t seed, std::uint32_t most, std::uint64_t steps) {
  std::uint64_t drawn = 0;
  const auto draw = [&](std::uint64_t below) {
    return mixed(mixed(seed, "faults"), drawn++) % below;
  };
  std::vector<fault> faults;
  if (most == 0) return faults;
  const std::uint64_t count = 1 + draw(most);
  for (std::uint64_t i = 0; i < count; ++i) {
    fault f;
    const std::uint64_t kind = draw(11);
    f.kind = kind < 5    ? fault_kind::kill
             : kind < 7  ? fault_kind::freeze
             : kind < 9  ? fault_kind::cut
             : kind < 10 ? fault_kind::join
                         : fault_kind::leave;
    f.after_step = 1 + draw(std::max<std::uint64_t>(1, steps * 2 / 3));
    // Half of them at some moment of the next steps, half soon after, to meet a change of plans.
    f.and_then = std::chrono::nanoseconds(draw(2) == 0 ? draw(20'000'000) : draw(2'000'000));
    f.target = draw(3) == 0 ? 0 : static_cast<std::uint32_t>(1 + draw(16));
    f.lasts = std::chrono::milliseconds(draw(2) == 0 ? draw(900) : draw(9000));
    f.noticed = draw(4) != 0;
    f.may_uncover = f.kind == fault_kind::freeze && draw(4) == 0;
    faults.push_back(f);
  }
  // Some follow each other closely.
  if (faults.size() > 1 && draw(2) == 0) faults[1].after_step = faults[0].after_step;
  return faults;
}

std::string to_text(const fault& f) {
  const char* kind = f.kind == fault_kind::kill     ? "kill"
                     : f.kind == fault_kind::freeze ? "freeze"
                     : f.kind == fault_kind::cut    ? "cut"
                     : f.kind == fault_kind::join   ? "join"
                                                    : "leave";
  return fmt::format("{} after step {} and {:.3f} ms, target {}, lasts {} ms{}", kind, f.after_step,
                     1e-6 * static_cast<double>(f.and_then.count()), f.target, f.lasts / 1ms,
                     f.noticed ? "" : ", unnoticed");
}

fault_driver::fault_driver(world& w, std::vector<fault> faults, liveness* told)
    : world_(w), liveness_(told) {
  for (fault& f : faults) faults_.push_back({f, false});
  away_.resize(w.size());
  restarting_.resize(w.size());
}

void fault_driver::tell(const std::string& what) {
  told_.push_back(
      fmt::format("{:.3f} ms: {}", 1e-6 * static_cast<double>(world_.now().count()), what));
}

bool fault_driver::works(std::size_t i) const { return world_.lives(i) && !away_[i]; }

// Nobody else may be away when all have to wait for one.
bool fault_driver::may_strike(const fault& f, std::size_t target) const {
  return keeps_cover(target) ||
         (f.may_uncover && std::ranges::none_of(away_, [](bool away) { return away; }));
}

// Would every block still have a holder that lives and can be reached?
bool fault_driver::keeps_cover(std::size_t without) const {
  return !world_.store().plans.empty() &&
         world_.newest_plan_is_covered([&](std::size_t i) { return i != without && works(i); });
}

void fault_driver::cut_off(std::size_t i, bool at_once) {
  comm::simulated_network& network = world_.network();
  cut_.resize(world_.size());
  cut_[i] = true;
  for (std::size_t other = 0; other < world_.size(); ++other) {
    if (other == i) continue;
    const auto a = world_.process(i), b = world_.process(other);
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      if (at_once) {
        network.cut_behind(from, to);
      } else {
        network.cut(from, to);
      }
    }
  }
}

void fault_driver::heal(std::size_t i) {
  cut_.resize(world_.size());
  cut_[i] = false;
  for (std::size_t other = 0; other < world_.size(); ++other) {
    if (other == i || cut_[other]) continue;
    world_.network().heal(world_.process(i), world_.process(other));
    world_.network().heal(world_.process(other), world_.process(i));
  }
}

// The member that the fault is meant for, or the next one that may be struck; nothing: none may.
std::optional<std::size_t> fault_driver::target_of(const fault& f) const {
  if (world_.store().plans.empty()) return std::nullopt;
  std::vector<std::size_t> living;
  for (std::size_t i = 0; i < world_.size(); ++i) {
    if (works(i)) living.push_back(i);
  }
  if (living.empty()) return std::nullopt;
  std::size_t first = (f.target + living.size() - 1) % living.size();
  if (f.target == 0) {
    const auto leads = std::ranges::find(living, world_.store().plans.back().coordinator.value);
    first = leads == living.end() ? 0 : static_cast<std::size_t>(leads - living.begin());
  }
  for (std::size_t i = 0; i < living.size(); ++i) {
    const std::size_t who = living[(first + i) % living.size()];
    if (may_strike(f, who)) return who;
  }
  return std::nullopt;
}

void fault_driver::strike(const fault& f) {
  const std::optional<std::size_t> found = f.kind == fault_kind::join ? std::nullopt : target_of(f);
  if (!found) {
    if (f.kind != fault_kind::join) ++refused_;
    ++struck_;
    const std::size_t i = world_.add_member();
    away_.resize(world_.size());
    restarting_.resize(world_.size());
    if (liveness_ != nullptr) liveness_->started(i);
    return tell(fmt::format("member {} joins{}", i,
                            f.kind == fault_kind::join ? "" : ", as nobody may be struck"));
  }
  hit(f, *found);
}

bool fault_driver::strike_now(const fault& f, std::size_t target) {
  const bool there = works(target) || (world_.lives(target) && leaving_.contains(target));
  if (!there || !may_strike(f, target)) return false;
  leaving_.erase(target);
  hit(f, target, true);
  return true;
}

void fault_driver::hit(const fault& f, std::size_t target, bool at_once) {
  ++struck_;
  tell(fmt::format("{} of member {}", to_text(f), target));
  if (f.kind == fault_kind::leave) {
    away_[target] = true;  // it may be gone at any moment: nobody may count on it
    if (liveness_ != nullptr) liveness_->leaves(target);
    leaving_.insert(target);
    return world_.stop(target, "told to leave");
  }
  if (liveness_ != nullptr) {
    liveness_->struck(target, f.kind != fault_kind::kill || !f.noticed);
  }
  const incarnation life = world_.life(target);
  if (f.kind == fault_kind::kill) {
    world_.kill(target, f.noticed ? std::optional<std::chrono::nanoseconds>(
                                        3ms + f.and_then % std::chrono::nanoseconds(5ms))
                                  : std::nullopt);
    return;
  }
  away_[target] = true;
  const bool frozen = f.kind == fault_kind::freeze;
  if (frozen) {
    world_.freeze(target);
  } else {
    cut_off(target, at_once);
  }
  world_.at(world_.now() + f.lasts, [this, target, life, frozen] {
    away_[target] = false;
    tell(fmt::format("member {} is back", target));
    if (world_.life(target) != life) return;
    if (liveness_ != nullptr) liveness_->back(target);
    if (frozen) {
      world_.thaw(target);
    } else {
      heal(target);
    }
  });
}

// The launcher: whoever has ended comes again.
void fault_driver::start_again(std::size_t i) {
  restarting_[i] = true;
  world_.at(world_.now() + restart_pause, [this, i] {
    restarting_[i] = false;
    if (world_.lives(i)) return;
    if (const auto& how = world_.ended(i)) {
      if (how->code == exit_code::ok || how->code == exit_code::defect) return;
      tell(fmt::format("member {} had ended: {}", i, how->why));
    }
    tell(fmt::format("member {} is started again", i));
    if (liveness_ != nullptr) liveness_->started(i);
    world_.revive(i);
  });
}

void fault_driver::look() {
  const std::uint64_t recorded = world_.lines().size();
  for (due_fault& f : faults_) {
    if (f.set || recorded < f.what.after_step) continue;
    f.set = true;
    world_.at(world_.now() + f.what.and_then, [this, what = f.what] { strike(what); });
  }
  if (world_.somebody_finished()) return;
  for (std::size_t i = 0; i < world_.size(); ++i) {
    if (world_.lives(i) || restarting_[i] || away_[i]) continue;
    const auto& how = world_.ended(i);
    // Who has left is not wanted any more.
    if (how && (how->code == exit_code::defect || how->code == exit_code::interrupted)) continue;
    start_again(i);
  }
}

void fault_driver::run(time_since_start at_most, const std::function<void()>& watch) {
  while (world_.now() <= at_most) {
    look();
    if (liveness_ != nullptr) liveness_->look();
    watch();
    if (world_.over() || !world_.step_on()) return;
  }
}

}  // namespace troupe::actors::sim
