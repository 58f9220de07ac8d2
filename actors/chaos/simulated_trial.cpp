#include "actors/chaos/simulated_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "actors/chaos/link_rules.hpp"
#include "actors/chaos/measure.hpp"
#include "actors/chaos/schedule.hpp"
#include "actors/chaos/worker_faults.hpp"
#include "actors/sim/invariants.hpp"
#include "comm/filtered_transport.hpp"
#include "config/base/mixing.hpp"

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;

// What a launcher and a process need to begin again; what peers need to see that one has ended.
constexpr duration restart_pause = 30ms, end_noticed = 3ms;

std::string name_of_slot(std::size_t i) { return fmt::format("worker-{}", i); }

// The world's clock, for who is made before the world.
class clock_of_world final : public clock_source {
 public:
  const sim::world* of = nullptr;
  time_since_start now() const override { return of != nullptr ? of->now() : time_since_start(0); }
  wall_time wall() const override { return wall_time(now()); }
};

class simulated_trial final : public sim::world_watcher {
 public:
  simulated_trial(const scenario& s, std::uint64_t seed, const simulated_settings& settings)
      : s_(s),
        settings_(settings),
        seed_(seed),
        schedule_(s, run_mode::sim, seed),
        world_settings_(shape(s, seed, settings)),
        checked_(world_settings_.toy, world_settings_.steps),
        world_(world_settings_, *this, parts()) {
    clock_.of = &world_;
    checked_.watch(
        [this](member_id m) -> const sim::toy_computation& { return world_.device(m.value); });
    checked_.watch_lives([this](member_id m) { return world_.life(m.value); });
    for (const fault& f : s.faults) {
      if (const auto* at = std::get_if<at_steps>(&f.when)) points_.insert(at->point.name);
      if (const auto* on = std::get_if<on_event>(&f.when)) points_.insert(on->name);
    }
    facts_.members = s.members;
  }

  run_facts run() {
    while (world_.now() <= s_.guard) {
      look();
      if (world_.over() || !world_.step_on()) break;
    }
    look();
    finish();
    return std::move(facts_);
  }

  // --- what happens in the world ---

  void plan_adopted(member_id m, const protocol::plan& p) override {
    checked_.plan_adopted(m, p);
    reached(m, "adopted", p.base);
  }
  void node_taken(member_id m, std::uint64_t step, const node_key& key) override {
    checked_.node_taken(m, step, key);
  }
  void sum_held_by_backup(member_id m, std::uint64_t step, block_id b, const hash128& h) override {
    checked_.sum_held_by_backup(m, step, b, h);
    reached(m, "grad-held", step);
  }
  void voted(member_id m, const protocol::vote& v) override {
    checked_.voted(m, v);
    reached(m, "voted", v.step);
  }
  void record_seen(member_id m, const protocol::record_notice& n) override {
    checked_.record_seen(m, n);
    reached(m, "commit-seen", n.record.step);
  }
  void block_applied(member_id m, block_id b, std::uint64_t version) override {
    checked_.block_applied(m, b, version);
    reached(m, "applied", version);
  }
  void layer_computed(member_id m, std::uint64_t step, std::uint32_t layer) override {
    checked_.layer_computed(m, step, layer);
  }
  void copy_verified(member_id m, block_id b, std::uint64_t version) override {
    checked_.copy_verified(m, b, version);
    reached(m, "copy-verified", version);
  }
  void promised(member_id m, generation next) override {
    checked_.promised(m, next);
    reached(m, "promised", 0);
  }
  void committed(member_id m, std::uint64_t step) override {
    checked_.committed(m, step);
    reached(m, "stable", step);
  }

 private:
  struct lasting {
    std::vector<std::pair<std::size_t, incarnation>> members;             // that stand still
    std::vector<std::pair<std::size_t, std::uint64_t>> rules;             // of whose filter
    std::vector<std::pair<comm::filtered_transport*, std::uint64_t>> of;  // the same, by address
  };

  static sim::world_settings shape(const scenario& s, std::uint64_t seed,
                                   const simulated_settings& settings) {
    sim::world_settings w;
    w.seed = seed;
    w.members = s.members;
    w.backups = settings.backups;
    w.steps = settings.steps;
    w.toy.virtual_ranks = settings.virtual_ranks;
    w.toy.seed = mixed(seed, "toy");
    return w;
  }

  sim::world_parts parts() {
    sim::world_parts all = sim::usual_parts();
    all.transport = [this](member_id m, std::unique_ptr<comm::transport> inner) {
      auto filter = std::make_unique<comm::filtered_transport>(
          std::move(inner),
          comm::filter_settings{clock_, name_of_message, [this, m](time_since_start when) {
                                  world_.at(when, [this, m] { world_.nudge(m.value); });
                                }});
      filters_[m.value] = filter.get();
      return filter;
    };
    all.computation = [this, usual = all.computation](
                          member_id m, const sim::toy_shape& toy, sim::timeline& time,
                          const clock_source& clock, const sim::toy_speed& speed, auto post,
                          auto computed) {
      // A job that begins while the device hangs takes until that is over.
      const auto hangs = [this, m, &clock](std::function<time_since_start()> usually) {
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
    all.adjust = [this](member_id, worker_settings& w, introductions_settings&) {
      w.heartbeat = settings_.heartbeat;
      w.suspect = settings_.suspect;
      w.evict = settings_.evict;
    };
    return all;
  }

  void say(const std::string& line) const {
    if (!settings_.say) return;
    settings_.say(fmt::format(
        "{:.3f} ms: {}", std::chrono::duration<double, std::milli>(clock_.now()).count(), line));
  }

  // In the middle of an actor's turn: what is to come of it comes after, but for an exception.
  void reached(member_id who, std::string_view point, std::uint64_t step) {
    if (const auto found = throws_.find(who.value); found != throws_.end()) {
      const std::string_view actor = actor_at(point);
      const std::string& wanted = found->second.second;
      if (actor != "" && (wanted.empty() || wanted == actor)) {
        injected_fault& f = facts_.faults[found->second.first];
        f.proven = clock_.now();
        f.proof = fmt::format("an exception in the {} of {} at {} of step {}", actor,
                              name_of_slot(who.value), point, step);
        began_.push_back(f.what.which);
        throws_.erase(found);
        throw std::runtime_error(f.proof + ", thrown on purpose");
      }
    }
    if (points_.contains(std::string(point)) && point != "stable") {
      pending_.push_back({{std::string(point), {}}, step, who, {}});
    }
  }

  // --- what is made of it ---

  void look() {
    const auto& plans = world_.store().plans;
    for (; plans_seen_ < plans.size(); ++plans_seen_) {
      tell(event_seen{"plan-published"});
      tell(step_begins{plans[plans_seen_].base + 1});
    }
    take_changes();
    take_lines();
    for (const point_reached& p : std::exchange(pending_, {})) tell(p);
    take_proofs();
    for (const occurrence& o : std::exchange(began_, {})) tell(fault_began{o});
    const auto due = schedule_.next_due();
    if (due && *due <= world_.now()) tell(time_passed{});
    if (const auto next = schedule_.next_due(); next && next != told_due_) {
      told_due_ = next;
      world_.at(std::max(*next, world_.now()), [] {});
    }
    start_again_who_ended();
  }

  void take_lines() {
    const auto& lines = world_.lines();
    for (auto line = lines.upper_bound(facts_.steps.size()); line != lines.end(); ++line) {
      const sim::committed_step& c = line->second;
      const time_since_start before =
          facts_.steps.empty() ? time_since_start(0) : facts_.steps.back().at;
      seen_step step{{}, world_.now()};
      step.record.step = c.record.step;
      step.record.loss = c.record.loss;
      step.record.grad_norm = c.record.grad_norm;
      step.record.lr = static_cast<double>(c.record.lr);
      step.record.tokens = static_cast<std::uint64_t>(c.record.tokens);
      step.record.world = c.world;
      step.record.generation = c.plan.value;
      step.record.skipped = c.record.skip;
      step.record.seconds = std::chrono::duration<double>(world_.now() - before).count();
      facts_.steps.push_back(std::move(step));
      tell(step_committed{c.record.step});
      tell(step_begins{c.record.step + 1});
    }
  }

  // As the records of a run tell them.
  void take_changes() {
    changes_seen_.resize(world_.size());
    for (std::size_t i = 0; i < world_.size(); ++i) {
      const auto& changes = world_.records(i).changes;
      if (changes.size() < changes_seen_[i]) changes_seen_[i] = 0;  // of a new life
      for (; changes_seen_[i] < changes.size(); ++changes_seen_[i]) {
        const auto& [number, how] = changes[changes_seen_[i]];
        add_events(world_.store().plans.at(number.value), how);
      }
    }
  }
  void add_events(const protocol::plan& plan, const world_change& how) {
    const auto seconds = [](duration d) { return std::chrono::duration<double>(d).count(); };
    const auto add = [&](const char* name, nlohmann::json fields) {
      fields["recovery"] = plan.number.value;
      fields["mono"] = seconds(world_.now());
      facts_.events.push_back({name, std::move(fields), world_.now()});
      tell(event_seen{event_of_record(name)});
    };
    redone_ += how.step_redone ? 1 : 0;
    for (const auto& lost : how.lost)
      add("member_lost", {{"member", lost.name}, {"cause", lost.how}});
    for (const std::string& name : how.joined) add("member_joined", {{"member", name}});
    add("generation", {{"from_step", plan.base},
                       {"recorded", facts_.steps.size()},
                       {"noticed_mono", seconds(how.noticed)},
                       {"unblock_ms", 1e3 * seconds(how.unblocked - how.noticed)}});
  }

  world_view view() const {
    world_view v;
    v.plan = world_.store().plans.back();
    v.domains = s_.domains;
    for (const protocol::plan_member& m : v.plan.members) {
      const std::size_t i = m.id.value;
      if (world_.lives(i) && world_.life(i) == m.life && !frozen_.contains(i)) v.alive.insert(m.id);
    }
    if (joiner_ && v.plan.find(*joiner_) != nullptr) v.joiner = joiner_;
    return v;
  }

  void tell(const happening& what) {
    if (world_.store().plans.empty()) return;
    const orders o = schedule_.tell(what, world_.now(), view());
    for (const ending& e : o.end) end(e.which);
    if (o.quiet_begins) {
      facts_.quiet_at = world_.now();
      facts_.steps_before_quiet = facts_.steps.size();
      say("quiet: nothing more goes wrong");
    }
    for (const injection& i : o.begin) strike(i);
    for (const refusal& r : o.refused) {
      say(fmt::format("{} is refused: {}", r.fault, r.why));
      facts_.refused.push_back(r);
    }
  }

  void strike(const injection& i) {
    injected_fault f{i, {}, world_.now(), {}, "", {}};
    for (const member_id m : i.whom.members) f.names.push_back(name_of_slot(m.value));
    say(fmt::format("{}: {} ({})", i.which.fault, name_of(i.kind), i.why));
    lasting& l = open_[i.which];
    const auto proven = [&](std::string words) {
      f.proven = world_.now();
      f.proof = std::move(words);
    };
    switch (i.kind) {
      case fault_kind::kill:
      case fault_kind::exit:
        for (const member_id m : i.whom.members) world_.kill(m.value, end_noticed);
        proven("it has ended");
        break;
      case fault_kind::stop:
        for (const member_id m : i.whom.members) {
          l.members.emplace_back(m.value, world_.life(m.value));
          world_.freeze(m.value);
          frozen_.insert(m.value);
        }
        proven("it stands still");
        break;
      case fault_kind::throws: {
        const auto actor = i.params.find("actor");
        for (const member_id m : i.whom.members) {
          throws_[m.value] = {facts_.faults.size(),
                              actor == i.params.end() ? "" : std::get<std::string>(actor->second)};
        }
        break;
      }
      case fault_kind::hang:
        for (const member_id m : i.whom.members) hangs_until_[m.value] = *i.until;
        proven("its device stands still");
        break;
      case fault_kind::join: {
        const std::size_t number = world_.add_member();
        joiner_ = member_id(static_cast<std::uint32_t>(number));
        f.names = {name_of_slot(number)};
        joins_[number] = facts_.faults.size();
        break;
      }
      case fault_kind::notice:
      case fault_kind::drain:
        for (const member_id m : i.whom.members) {
          world_.stop(m.value, "told to leave");
          if (const auto grace = i.params.find("grace"); grace != i.params.end()) {
            world_.at(world_.now() + std::get<duration>(grace->second),
                      [this, m, life = world_.life(m.value)] {
                        if (world_.life(m.value) == life) world_.kill(m.value, end_noticed);
                      });
          }
        }
        proven("it was told");
        break;
      default:
        spoil_links(i, l);
        break;
    }
    facts_.faults.push_back(std::move(f));
    if (facts_.faults.back().proven) began_.push_back(i.which);
  }

  void spoil_links(const injection& i, lasting& l) {
    worker_order o;
    o.kind = i.kind;
    o.params = i.params;
    o.seed = mixed(mixed(seed_, i.which.fault), i.which.number);
    std::map<member_id, std::vector<member_id>> to;
    for (const link& one : i.whom.links) to[one.from].push_back(one.to);
    for (auto& [from, towards] : to) {
      o.id = ++rules_;
      o.towards = std::move(towards);
      filters_.at(from.value)->faults().begin(rule_of(o));
      l.of.emplace_back(filters_.at(from.value), o.id);
      l.rules.emplace_back(from.value, o.id);
    }
  }

  // Of what takes its time to happen.
  void take_proofs() {
    for (injected_fault& f : facts_.faults) {
      if (f.proven) continue;
      const auto open = open_.find(f.what.which);
      if (f.what.kind == fault_kind::join) {
        const auto& plans = world_.store().plans;
        for (const auto& [number, index] : joins_) {
          if (&facts_.faults[index] != &f) continue;
          if (plans.back().find(member_id(static_cast<std::uint32_t>(number))) == nullptr) continue;
          f.proven = world_.now();
          f.proof = fmt::format("{} stands in the plan", f.names.front());
          began_.push_back(f.what.which);
        }
      } else if (open != open_.end()) {
        for (std::size_t r = 0; r < open->second.rules.size(); ++r) {
          const auto& [member, id] = open->second.rules[r];
          if (filters_.at(member) != open->second.of[r].first) continue;  // of a life that is over
          if (filters_.at(member)->faults().struck(id) == 0 || f.proven) continue;
          f.proven = world_.now();
          f.proof = "a message was struck";
          began_.push_back(f.what.which);
        }
      }
    }
  }

  void end(const occurrence& which) {
    const auto open = open_.find(which);
    if (open == open_.end()) return;
    take_proofs();
    say(fmt::format("{} ends", which.fault));
    for (const auto& [i, life] : open->second.members) {
      frozen_.erase(i);
      if (world_.life(i) == life) world_.thaw(i);
    }
    for (std::size_t r = 0; r < open->second.rules.size(); ++r) {
      const auto& [member, id] = open->second.rules[r];
      if (filters_.at(member) != open->second.of[r].first) continue;
      filters_.at(member)->faults().end(id);
      world_.nudge(member);
    }
    open_.erase(open);
    for (injected_fault& f : facts_.faults) {
      if (f.what.which == which) f.over = world_.now();
    }
  }

  void start_again_who_ended() {
    if (world_.somebody_finished()) return;
    for (std::size_t i = 0; i < world_.size(); ++i) {
      if (world_.lives(i) || restarting_.contains(i) || frozen_.contains(i)) continue;
      const auto& how = world_.ended(i);
      // Who has left is not wanted any more.
      if (how && (how->code == exit_code::interrupted || how->code == exit_code::ok)) continue;
      restarting_.insert(i);
      world_.at(world_.now() + restart_pause, [this, i] {
        restarting_.erase(i);
        if (world_.lives(i) || world_.somebody_finished()) return;
        say(fmt::format("{} is started again", name_of_slot(i)));
        hangs_until_.erase(i);
        changes_seen_[i] = 0;
        world_.revive(i);
      });
    }
  }

  void finish() {
    facts_.ended = world_.now();
    facts_.guard_struck = world_.now() > s_.guard && !world_.over();
    const std::string trouble = world_.trouble();
    facts_.exit = static_cast<int>(trouble.empty() ? exit_code::ok : exit_code::too_few);
    if (trouble.empty()) checked_.check_end(world_.store());
    facts_.invariant_checks = checked_.checks();
    if (checked_.first()) {
      facts_.violation = checked_.first()->text();
      facts_.violated = checked_.first()->invariant;
    } else if (!trouble.empty()) {
      facts_.violation = trouble;
      facts_.violated = "end";
    }
    const auto& plans = world_.store().plans;
    facts_.plans = plans.size();
    if (!plans.empty()) facts_.members_at_end = plans.back().members.size();
    facts_.steps_redone = redone_;
    const auto& saves = world_.store().saves;
    if (saves.empty()) return;
    hasher all;
    for (const auto& [block, state] : saves.rbegin()->second.blocks) {
      for (const sim::toy_block* part :
           {&state.parameters, &state.first_moments, &state.second_moments}) {
        all.add(std::as_bytes(std::span(*part)));
      }
    }
    facts_.weights_hash = facts_.state_hash = all.finish().hex();
  }

  const scenario& s_;
  const simulated_settings& settings_;
  std::uint64_t seed_;
  schedule schedule_;
  run_facts facts_;
  std::set<std::string> points_;
  clock_of_world clock_;
  std::map<std::size_t, comm::filtered_transport*> filters_;  // by slot, of its present life
  std::map<std::size_t, time_since_start> hangs_until_;
  std::map<std::size_t, std::pair<std::size_t, std::string>> throws_;  // fault, actor
  std::vector<point_reached> pending_;
  std::vector<occurrence> began_;
  std::map<occurrence, lasting> open_;
  std::set<std::size_t> frozen_, restarting_;
  std::map<std::size_t, std::size_t> joins_;  // slot, fault
  std::optional<member_id> joiner_;
  std::uint64_t rules_ = 0, redone_ = 0;
  std::size_t plans_seen_ = 0;
  std::vector<std::size_t> changes_seen_;  // by slot
  std::optional<duration> told_due_;
  sim::world_settings world_settings_;
  sim::invariants checked_;
  sim::world world_;  // last: it uses all of the above
};

}  // namespace

run_facts run_in_simulation(const scenario& s, std::uint64_t seed,
                            const simulated_settings& settings) {
  return simulated_trial(s, seed, settings).run();
}

reference_facts reference_of(const run_facts& run) {
  reference_facts facts;
  for (const seen_step& s : run.steps) facts.steps.push_back(s.record);
  facts.weights_hash = run.weights_hash;
  facts.state_hash = run.state_hash;
  const auto rates = measure(run, std::nullopt).metrics;
  if (const auto goodput = rates.find("goodput"); goodput != rates.end()) {
    facts.goodput = goodput->second;
  }
  return facts;
}

}  // namespace troupe::actors::chaos
