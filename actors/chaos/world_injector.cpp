#include "actors/chaos/world_injector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "actors/chaos/link_rules.hpp"
#include "actors/chaos/worker_faults.hpp"
#include "config/base/mixing.hpp"

namespace troupe::actors::chaos {
namespace {

// What peers need to see that a process has ended.
constexpr duration end_noticed = std::chrono::milliseconds(3);

}  // namespace

std::string name_of_world_slot(std::size_t i) { return fmt::format("worker-{}", i); }

sim::world_parts world_injector::parts() {
  sim::world_parts all = sim::usual_parts();
  all.transport = [this](member_id m, std::unique_ptr<comm::transport> inner) {
    auto filter = std::make_unique<comm::filtered_transport>(
        std::move(inner),
        comm::filter_settings{
            [this] { return now(); }, name_of_message,
            [this, m](auto when) { world_->at(when, [this, m] { world_->nudge(m.value); }); }});
    filters_[m.value] = filter.get();
    return filter;
  };
  all.computation = [this, usual = all.computation](member_id m, const sim::toy_shape& toy,
                                                    sim::timeline& time, const clock_source& clock,
                                                    const sim::toy_speed& speed, auto post,
                                                    auto computed) {
    // A job that begins while the device hangs takes until that is over.
    const auto hangs = [this, m, &clock](const std::function<time_since_start()>& usually) {
      return [this, m, &clock, usually] {
        const auto until = hangs_until_.find(m.value);
        const time_since_start more =
            until == hangs_until_.end() ? time_since_start(0) : until->second - clock.now();
        return usually() + std::max(time_since_start(0), more);
      };
    };
    return usual(m, toy, time, clock, {hangs(speed.layer), hangs(speed.protocol), speed.load},
                 std::move(post), std::move(computed));
  };
  return all;
}

void world_injector::strikes_in(sim::world& w) { world_ = &w; }

void world_injector::prove(injected_fault& f, std::string words) {
  f.proven = world_->now();
  f.proof = std::move(words);
  begun_.push_back(f.what.which);
}

void world_injector::begin(const injection& i) {
  const std::size_t index = faults_.size();
  faults_.push_back({i, {}, world_->now(), {}, "", {}});
  injected_fault& f = faults_.back();
  for (const member_id m : i.whom.members) f.names.push_back(name_of_world_slot(m.value));
  lasting& of = open_[i.which];
  switch (i.kind) {
    case fault_kind::kill:
    case fault_kind::exit:
      for (const member_id m : i.whom.members) world_->kill(m.value, end_noticed);
      return prove(f, "it has ended");
    case fault_kind::stop:
      for (const member_id m : i.whom.members) {
        of.frozen.emplace_back(m.value, world_->life(m.value));
        world_->freeze(m.value);
        frozen_.insert(m.value);
      }
      return prove(f, "it stands still");
    case fault_kind::throws: {
      const auto actor = i.params.find("actor");
      const std::string name = actor == i.params.end() ? "" : std::get<std::string>(actor->second);
      for (const member_id m : i.whom.members) throws_[m.value] = {index, name};
      return;
    }
    case fault_kind::hang:
      ensure(i.until.has_value(),
             "a device of a simulated world was to hang for nobody knows how long");
      for (const member_id m : i.whom.members) hangs_until_[m.value] = *i.until;
      return prove(f, "its device stands still");
    case fault_kind::join: {
      const std::size_t number = world_->add_member();
      joiner_ = member_id(static_cast<std::uint32_t>(number));
      f.names = {name_of_world_slot(number)};
      joins_[number] = index;
      return;
    }
    case fault_kind::notice:
    case fault_kind::drain:
      tell_to_leave(i);
      return prove(f, "it was told");
    default:
      return spoil_links(i, of);
  }
}

void world_injector::tell_to_leave(const injection& i) {
  for (const member_id m : i.whom.members) {
    world_->stop(m.value, "told to leave");
    const auto grace = i.params.find("grace");
    if (grace == i.params.end()) continue;
    world_->at(world_->now() + std::get<duration>(grace->second),
               [this, m, life = world_->life(m.value)] {
                 if (world_->life(m.value) == life) world_->kill(m.value, end_noticed);
               });
  }
}

void world_injector::spoil_links(const injection& i, lasting& of) {
  worker_order o;
  o.kind = i.kind;
  o.params = i.params;
  o.seed = mixed(mixed(seed_, i.which.fault), i.which.number);
  std::map<member_id, std::vector<member_id>> to;
  for (const link& one : i.whom.links) to[one.from].push_back(one.to);
  for (auto& [from, towards] : to) {
    o.id = ++rules_;
    o.towards = std::move(towards);
    comm::filtered_transport* filter = filters_.at(from.value);
    filter->faults().begin(rule_of(o));
    of.rules.push_back({from.value, filter, o.id});
  }
}

void world_injector::end(const occurrence& which) {
  const auto open = open_.find(which);
  if (open == open_.end()) return;
  look_for_proofs();
  for (const auto& [i, life] : open->second.frozen) {
    frozen_.erase(i);
    if (world_->life(i) == life) world_->thaw(i);
  }
  for (const rule& r : open->second.rules) {
    if (!lives(r)) continue;
    r.filter->faults().end(r.id);
    world_->nudge(r.member);
  }
  open_.erase(open);
  for (injected_fault& f : faults_) {
    if (f.what.which == which) f.over = world_->now();
  }
}

// Of what takes its time to happen.
void world_injector::look_for_proofs() {
  for (injected_fault& f : faults_) {
    if (f.proven) continue;
    if (f.what.kind == fault_kind::join) {
      for (const auto& [slot, index] : joins_) {
        const member_id m(static_cast<std::uint32_t>(slot));
        if (&faults_[index] != &f || world_->store().plans.back().find(m) == nullptr) continue;
        prove(f, fmt::format("{} stands in the plan", f.names.front()));
      }
      continue;
    }
    const auto open = open_.find(f.what.which);
    if (open == open_.end()) continue;
    const bool struck = std::ranges::any_of(open->second.rules, [this](const rule& r) {
      return lives(r) && r.filter->faults().struck(r.id) > 0;
    });
    if (struck) prove(f, "a message was struck");
  }
}

std::vector<occurrence> world_injector::take_begun() {
  look_for_proofs();
  return std::exchange(begun_, {});
}

void world_injector::at_point(member_id who, std::string_view point, std::uint64_t step) {
  const auto found = throws_.find(who.value);
  if (found == throws_.end()) return;
  const std::string_view actor = actor_at(point);
  const std::string& wanted = found->second.second;
  if (actor.empty() || (!wanted.empty() && wanted != actor)) return;
  injected_fault& f = faults_[found->second.first];
  throws_.erase(found);
  prove(f, fmt::format("an exception in the {} of {} at {} of step {}", actor,
                       name_of_world_slot(who.value), point, step));
  throw std::runtime_error(f.proof + ", thrown on purpose");
}

}  // namespace troupe::actors::chaos
