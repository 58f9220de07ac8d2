#include "actors/chaos/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "actors/chaos/overloaded.hpp"
#include "actors/chaos/random_mix.hpp"
#include "config/base/mixing.hpp"

namespace troupe::actors::chaos {
namespace {

duration seconds(double s) { return duration(static_cast<std::int64_t>(s * 1e9)); }

// Every gap is longer or shorter by up to the jitter.
std::int64_t jittered(std::int64_t every, std::int64_t jitter, std::uint64_t draw) {
  const double by = (2 * unit_interval(draw) - 1) * static_cast<double>(jitter);
  return std::max<std::int64_t>(1, every + static_cast<std::int64_t>(by));
}

// Points that one member reaches for all: whom a fault strikes there is another matter.
bool of_everybody(std::string_view point) {
  constexpr std::string_view theirs[] = {
      "votes-complete", "decided",          "commit-sent",
      "stable",         "suspected",        "collect-sent",
      "collected",      "plan-written",     "published",
      "verdict-sent",   "resumed",          "save-begin",
      "join-hello",     "join-admitted",    "redundancy-restored",
      "command-acked",  "manifest-written", "manifest-linked",
      "old-removed"};
  return std::ranges::find(theirs, point) != std::end(theirs);
}

// The point at which a fault comes, if it has one.
std::optional<named_point> point_of(const fault& f) {
  if (const auto* at = std::get_if<at_steps>(&f.when)) return at->point;
  if (const auto* on = std::get_if<on_event>(&f.when)) {
    if (is_reached(on->name)) return named_point{on->name, {}};
  }
  return std::nullopt;
}

// From outside a point is seen too late, or not at all. What a worker can do to itself it is told
// ahead then; who is only to be killed as a step begins can be killed from outside as well.
bool comes_ahead(const fault& f) {
  const auto point = point_of(f);
  if (!point || !takes_orders(f.kind)) return false;
  const bool only_itself = f.kind == fault_kind::exit || f.kind == fault_kind::throws ||
                           f.kind == fault_kind::hang || f.kind == fault_kind::nan;
  return !seen_from_outside(point->name) || only_itself;
}

bool touches(const chosen& whom, const std::vector<member_id>& core) {
  return core.empty() || std::ranges::any_of(whom.members, [&](member_id m) {
           return std::ranges::find(core, m) != core.end();
         });
}

}  // namespace

schedule::schedule(scenario s, run_mode mode, std::uint64_t seed) : s_(std::move(s)), seed_(seed) {
  for (const fault& f : s_.faults) {
    lanes_.emplace_back();
    lanes_.back().what = f;
    lanes_.back().ahead = mode == run_mode::process && comes_ahead(f);
  }
  if (!s_.random) return;
  random_kinds_ = weights_of(*s_.random, mode, seed_);
  lane l;
  l.what.id = "random";
  l.what.when = poisson{s_.random->per_hour};
  l.what.must_happen = false;
  l.random = true;
  lanes_.push_back(std::move(l));
}

std::uint64_t schedule::draw(const lane& l, std::string_view what) const {
  return mixed(mixed(mixed(mixed(seed_, "fault"), l.what.id), l.occasions), what);
}

orders schedule::tell(const happening& what, duration now, const world_view& seen) {
  orders out;
  world_view world = seen;
  world.receivers.insert(receivers_.begin(), receivers_.end());
  without_doomed(world);
  const moment at{now, world, out};
  on_time(at);
  std::visit(
      overloaded{[](const time_passed&) {}, [&](const step_begins& e) { on_step(at, e.step); },
                 [&](const step_committed& e) { on_committed(at, e.step); },
                 [&](const point_reached& e) { on_point(at, e); },
                 [&](const event_seen& e) { on_named(at, e.name); },
                 [&](const fault_began& e) { on_began(at, e.which); },
                 [&](const fault_failed& e) {
                   std::erase_if(open_, [&](const auto& o) { return o.which == e.which; });
                   std::erase_if(doomed_, [&](const auto& d) { return d.by == e.which; });
                   for (lane& l : lanes_) l.failed += l.what.id == e.which.fault ? 1 : 0;
                 },
                 [&](const armed_struck& e) { on_struck(at, e); },
                 [&](const fault_over& e) {
                   std::erase_if(open_, [&](const auto& o) { return o.which == e.which; });
                 }},
      what);
  return out;
}

// Between an order and its effect a member still looks alive; a second fault must not count on it.
// A later life in its slot is another member.
void schedule::doom(member_id m, const occurrence& by, world_view& world) {
  if (const protocol::plan_member* found = world.plan.find(m)) {
    doomed_.push_back({m, found->life, by});
  }
  world.alive.erase(m);
}

void schedule::without_doomed(world_view& world) const {
  for (const doomed& d : doomed_) {
    const protocol::plan_member* found = world.plan.find(d.member);
    if (found != nullptr && found->life == d.life) world.alive.erase(d.member);
  }
}

void schedule::first_commit(const moment& at) {
  first_commit_ = at.now;
  for (lane& l : lanes_) {
    if (const auto* t = std::get_if<at_moment>(&l.what.when)) {
      l.due_at.push_back(at.now + t->since_first_commit);
    }
    if (!l.random) arm_next(l, at.now);
  }
}

// The next moment of a fault that comes again and again by the clock.
void schedule::arm_next(lane& l, duration from) {
  const auto* p = std::get_if<periodic>(&l.what.when);
  if (p != nullptr && std::holds_alternative<duration>(p->every)) {
    const std::int64_t gap = jittered(std::get<duration>(p->every).count(),
                                      std::get<duration>(p->jitter).count(), draw(l, "gap"));
    l.due_at.push_back(from + duration(gap));
  } else if (const auto* r = std::get_if<poisson>(&l.what.when)) {
    const double gap = -std::log1p(-unit_interval(draw(l, "gap"))) * 3600 / r->per_hour;
    l.due_at.push_back(from + seconds(std::min(gap, 1e9)));
  }
}

void schedule::end_due(const moment& at) {
  std::erase_if(open_, [&](const open_fault& o) {
    const bool over = (o.until && *o.until <= at.now) || (o.until_step && *o.until_step <= step_);
    if (over) at.out.end.push_back({o.which, o.kind});
    return over;
  });
}

void schedule::on_time(const moment& at) {
  end_due(at);
  if (quiet_ || !first_commit_) return;
  if (s_.quiet && s_.quiet->at_time && at.now >= *first_commit_ + *s_.quiet->at_time) {
    return begin_quiet(at);
  }
  for (lane& l : lanes_) {
    std::vector<duration> due;
    std::erase_if(l.due_at, [&](duration d) {
      if (d <= at.now) due.push_back(d);
      return d <= at.now;
    });
    for (const duration d : due) {
      const bool in_time = !l.random || step_ <= s_.random->to_step;
      if (!in_time) continue;
      occasion(l, at, l.random ? "by chance" : "its time has come");
      arm_next(l, d);
      if (l.random && last_random_) {
        l.due_at.back() = std::max(l.due_at.back(), *last_random_ + s_.random->min_gap);
      }
    }
  }
}

// An occasion comes once for each step, or for each attempt at it.
bool schedule::matches_step(lane& l, std::uint64_t step, const named_point& point) {
  const auto* at = std::get_if<at_steps>(&l.what.when);
  if (l.ahead || at == nullptr || at->point.name != point.name) return false;
  if (at->point.k && at->point.k != point.k) return false;
  const bool one_of_them = std::ranges::any_of(
      at->steps, [&](const step_range& r) { return r.first <= step && step <= r.last; });
  return one_of_them && l.steps_seen.insert(step).second;
}

void schedule::on_step(const moment& at, std::uint64_t step) {
  step_ = step;
  end_due(at);
  if (s_.quiet && s_.quiet->at_step && step >= *s_.quiet->at_step) begin_quiet(at);
  if (quiet_) return;
  const std::string why = fmt::format("step {} begins", step);
  for (lane& l : lanes_) {
    if (l.what.each_attempt) l.steps_seen.erase(step);
    if (matches_step(l, step, {"step-begin", {}})) occasion(l, at, why);
    const std::size_t before = l.due_steps.size();
    std::erase_if(l.due_steps, [&](std::uint64_t s) { return s <= step; });
    for (std::size_t i = l.due_steps.size(); i < before; ++i) occasion(l, at, why);
    if (const auto* p = std::get_if<periodic>(&l.what.when)) {
      if (const auto* every = std::get_if<step_count>(&p->every)) {
        if (before == 0 || l.due_steps.size() < before) {
          const std::int64_t gap = jittered(
              static_cast<std::int64_t>(every->value),
              static_cast<std::int64_t>(std::get<step_count>(p->jitter).value), draw(l, "gap"));
          l.due_steps.push_back(step + static_cast<std::uint64_t>(gap));
        }
      }
    }
    if (l.random && step >= s_.random->from_step && !l.armed) {
      l.armed = true;  // its clock runs from here on
      arm_next(l, at.now);
    }
  }
}

void schedule::on_committed(const moment& at, std::uint64_t step) {
  if (!first_commit_) first_commit(at);
  if (quiet_) return;
  for (lane& l : lanes_) {
    if (matches_step(l, step, {"stable", {}})) {
      occasion(l, at, fmt::format("step {} is stable", step));
    }
  }
}

void schedule::on_point(const moment& at, const point_reached& p) {
  if (quiet_) return;
  for (lane& l : lanes_) {
    const auto* on = std::get_if<on_event>(&l.what.when);
    const bool named = on != nullptr && on->name == p.point.name;
    const auto* steps = std::get_if<at_steps>(&l.what.when);
    const bool here = steps != nullptr && steps->point.name == p.point.name;
    if (!named && !here) continue;
    // A member's own point matters only where that member is struck.
    std::optional<member_id> who;
    if (!of_everybody(p.point.name)) {
      who = p.who;
      const preference only_this = [&](const auto& some) { return some == std::vector{p.who}; };
      const chosen whom = resolve_members(l.what.target, at.world, draw(l, "target"), only_this);
      if (std::ranges::find(whom.members, p.who) == whom.members.end()) continue;
    }
    if (here && !matches_step(l, p.step, p.point)) continue;
    const std::uint64_t before = l.injected;
    occasion(l, at, fmt::format("m{} is at {} of step {}", p.who.value, to_text(p.point), p.step),
             who);
    if (l.injected > before && p.receiver) receivers_[l.what.id] = *p.receiver;
  }
}

void schedule::on_named(const moment& at, const std::string& event) {
  if (quiet_) return;
  for (lane& l : lanes_) {
    const auto* on = std::get_if<on_event>(&l.what.when);
    if (!l.ahead && on != nullptr && on->name == event) occasion(l, at, "after " + event);
  }
}

void schedule::on_began(const moment& at, const occurrence& which) {
  if (quiet_) return;
  for (lane& l : lanes_) {
    const auto* after = std::get_if<after_fault>(&l.what.when);
    if (after == nullptr || after->fault != which.fault) continue;
    if (const auto* steps = std::get_if<step_count>(&after->plus); steps && steps->value > 0) {
      l.due_steps.push_back(step_ + steps->value);
      continue;
    }
    const auto* time = std::get_if<duration>(&after->plus);
    if (time != nullptr && time->count() > 0) {
      l.due_at.push_back(at.now + *time);
      std::ranges::sort(l.due_at);
    } else {
      occasion(l, at, "after " + which.fault);
    }
  }
}

void schedule::begin_quiet(const moment& at) {
  if (quiet_) return;
  quiet_ = true;
  at.out.quiet_begins = true;
  for (lane& l : lanes_) {
    l.due_at.clear();
    l.due_steps.clear();
  }
  // Those outside of the core stay broken: the core must come along without them.
  std::erase_if(open_, [&](const open_fault& o) {
    const bool heal = touches(o.whom, s_.quiet->core);
    if (heal) at.out.end.push_back({o.which, o.kind});
    return heal;
  });
}

fault schedule::random_fault(const lane& l) const {
  fault f = l.what;
  f.kind = drawn(random_kinds_, unit_interval(draw(l, "kind")));
  if (row_of(f.kind).what == strikes::newcomer) f.target.what = selector::kind::joiner;
  // From a hiccup to longer than any suspicion.
  if (row_of(f.kind).lasts) f.lasts = seconds(0.2 + 4.8 * unit_interval(draw(l, "lasts")));
  return f;
}

strike schedule::taken() const {
  strike all;
  for (const open_fault& o : open_) {
    if (o.kind == fault_kind::cut) {
      all.cut.insert(all.cut.end(), o.whom.links.begin(), o.whom.links.end());
    } else if (row_of(o.kind).loses_member) {
      all.lost.insert(all.lost.end(), o.whom.members.begin(), o.whom.members.end());
    }
  }
  return all;
}

aim_rules schedule::rules_of(const lane& l) const {
  return {s_.inside_promise, s_.may_lose,
          l.random ? s_.random->spare_roles : std::vector<selector>()};
}

void schedule::occasion(lane& l, const moment& at, const std::string& why,
                        std::optional<member_id> at_member) {
  if (quiet_ || (l.what.count && l.injected - l.failed >= *l.what.count)) return;
  ++l.occasions;
  if (unit_interval(draw(l, "chance")) >= l.what.chance) return;
  if (l.random) {
    const auto open = std::ranges::count(open_, true, &open_fault::random);
    if (static_cast<std::uint64_t>(open) >= s_.random->max_open) return;
    last_random_ = at.now;
  }
  const fault f = l.random ? random_fault(l) : l.what;
  const auto refuse = [&](std::string reason) {
    at.out.refused.push_back({f.id, fmt::format("{}: {}", name_of(f.kind), reason), step_});
  };
  if (f.kind == fault_kind::join && joins_ >= s_.spares) return refuse("no spare is left");
  const chosen whom = aim(f, rules_of(l), at.world, taken(), draw(l, "target"), at_member);
  if (!whom.nobody.empty()) return refuse(whom.nobody);
  joins_ += f.kind == fault_kind::join ? 1 : 0;
  take_on(l, at,
          {{f.id, l.injected + 1}, f.kind, whom, f.params, {}, why, step_, f.must_happen, false},
          f.lasts);
}

// From here on the injection counts.
void schedule::take_on(lane& l, const moment& at, injection next, const lifetime& lasts) {
  ++l.injected;
  if (row_of(next.kind).lasts) {
    open_fault o{next.which, next.kind, next.whom, {}, {}, l.random};
    if (const auto* time = std::get_if<duration>(&lasts)) o.until = at.now + *time;
    if (const auto* steps = std::get_if<step_count>(&lasts)) o.until_step = step_ + steps->value;
    next.until = o.until;
    open_.push_back(std::move(o));
  } else if (row_of(next.kind).loses_member) {
    for (const member_id m : next.whom.members) doom(m, next.which, at.world);
  }
  at.out.begin.push_back(std::move(next));
}

std::vector<armed_fault> schedule::to_arm(const world_view& seen) const {
  std::vector<armed_fault> all;
  if (quiet_) return all;
  world_view world = seen;
  without_doomed(world);
  for (const lane& l : lanes_) {
    if (!l.ahead || (l.what.count && l.injected - l.failed >= *l.what.count)) continue;
    const fault& f = l.what;
    armed_fault a{{f.id, l.injected + 1}, f.kind, {}, f.params, *point_of(f), {}, {}};
    if (const auto* at = std::get_if<at_steps>(&f.when)) {
      for (const step_range& r : at->steps) {
        // Without those that had it already, and those that are over.
        std::uint64_t first = r.first;
        while (!f.each_attempt && l.steps_seen.contains(first)) ++first;
        if (first <= r.last && step_ <= r.last) a.steps.push_back({first, r.last});
      }
      if (a.steps.empty()) continue;
    } else {
      a.steps.push_back({0, UINT64_MAX});
    }
    a.whom = aim(f, rules_of(l), world, taken(), draw(l, "target"), std::nullopt);
    if (!a.whom.nobody.empty()) continue;  // perhaps in the next world
    if (const auto* time = std::get_if<duration>(&f.lasts); time && row_of(f.kind).lasts) {
      a.lasts = *time;
    }
    all.push_back(std::move(a));
  }
  return all;
}

void schedule::on_struck(const moment& at, const armed_struck& e) {
  const auto l = std::ranges::find(lanes_, e.which.fault, [](const lane& x) { return x.what.id; });
  if (l == lanes_.end() || e.which.number != l->injected + 1) return;  // told already
  ++l->occasions;
  l->steps_seen.insert(e.step);
  take_on(*l, at,
          {e.which,
           l->what.kind,
           {{e.who}, {}, ""},
           l->what.params,
           {},
           e.point.empty() ? fmt::format("m{} in step {}", e.who.value, e.step)
                           : fmt::format("m{} is at {} of step {}", e.who.value, e.point, e.step),
           e.step,
           l->what.must_happen,
           true},
          l->what.lasts);
}

std::optional<duration> schedule::next_due() const {
  std::optional<duration> next;
  const auto sooner = [&](duration d) { next = next ? std::min(*next, d) : d; };
  for (const open_fault& o : open_) {
    if (o.until) sooner(*o.until);
  }
  if (quiet_ || !first_commit_) return next;
  for (const lane& l : lanes_) {
    for (const duration d : l.due_at) sooner(d);
  }
  if (s_.quiet && s_.quiet->at_time) sooner(*first_commit_ + *s_.quiet->at_time);
  return next;
}

std::uint64_t schedule::injected(const std::string& fault) const {
  for (const lane& l : lanes_) {
    if (l.what.id == fault) return l.injected - l.failed;
  }
  return 0;
}

std::vector<occurrence> schedule::open() const {
  std::vector<occurrence> all;
  for (const open_fault& o : open_) all.push_back(o.which);
  return all;
}

}  // namespace troupe::actors::chaos
