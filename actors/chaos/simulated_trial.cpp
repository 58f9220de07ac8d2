#include "actors/chaos/simulated_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "actors/chaos/measure.hpp"
#include "actors/chaos/schedule.hpp"
#include "actors/chaos/world_injector.hpp"
#include "actors/sim/invariants.hpp"
#include "config/base/mixing.hpp"

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;

// What a launcher and a process need to begin again.
constexpr duration restart_pause = 30ms;

class simulated_trial final : public sim::world_watcher {
 public:
  simulated_trial(const scenario& s, std::uint64_t seed, const simulated_settings& settings)
      : s_(s),
        settings_(settings),
        schedule_(s, run_mode::sim, seed),
        injector_(seed),
        world_settings_(shape(s, seed, settings)),
        checked_(world_settings_.toy, world_settings_.steps),
        world_(world_settings_, *this, parts()) {
    injector_.strikes_in(world_);
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

  void reached(member_id m, protocol_point at, std::uint64_t step,
               std::optional<member_id> to) override {
    named_point point{std::string(name_of(at)), {}};
    const std::uint32_t k = passes_[m].count(at, step);
    if (counts(point.name)) point.k = k;
    comes_by({std::move(point), step, m, to});
  }
  void plan_adopted(member_id m, const protocol::plan& p) override {
    checked_.plan_adopted(m, p);
    passes_[m].begin_plan();
  }
  void node_taken(member_id m, std::uint64_t step, const node_key& key) override {
    checked_.node_taken(m, step, key);
  }
  void sum_held_by_backup(member_id m, std::uint64_t step, block_id b, const hash128& h) override {
    checked_.sum_held_by_backup(m, step, b, h);
  }
  void voted(member_id m, const protocol::vote& v) override { checked_.voted(m, v); }
  void record_seen(member_id m, const protocol::record_notice& n) override {
    checked_.record_seen(m, n);
  }
  void block_applied(member_id m, block_id b, std::uint64_t version) override {
    checked_.block_applied(m, b, version);
  }
  void layer_opened(member_id m, std::uint64_t step, std::uint32_t layer) override {
    checked_.layer_opened(m, step, layer);
  }
  void layer_computed(member_id m, std::uint64_t step, std::uint32_t layer) override {
    checked_.layer_computed(m, step, layer);
  }
  void copy_verified(member_id m, block_id b, std::uint64_t version) override {
    checked_.copy_verified(m, b, version);
  }
  void promised(member_id m, generation next) override { checked_.promised(m, next); }
  void committed(member_id m, std::uint64_t step) override { checked_.committed(m, step); }

 private:
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
    sim::world_parts all = injector_.parts();
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
        "{:.3f} ms: {}", std::chrono::duration<double, std::milli>(world_.now()).count(), line));
  }

  // In the middle of an actor's turn: what is to come of it comes after, but for an exception.
  void comes_by(point_reached p) {
    const std::string& point = p.point.name;
    injector_.at_point(p.who, point, p.step);
    // These two the records tell.
    if (point == "stable" || point == "step-begin") return;
    if (points_.contains(point)) {
      pending_.push_back(std::move(p));
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
    if (!plans.empty()) {
      for (const occurrence& o : injector_.take_begun()) tell(fault_began{o});
    }
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
      const committed_step& c = line->second;
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
      if (world_.lives(i) && world_.life(i) == m.life && !injector_.stands_still(i))
        v.alive.insert(m.id);
    }
    const auto joiner = injector_.joiner();
    if (joiner && v.plan.find(*joiner) != nullptr) v.joiner = joiner;
    return v;
  }

  void tell(const happening& what) {
    if (world_.store().plans.empty()) return;
    const orders o = schedule_.tell(what, world_.now(), view());
    for (const ending& e : o.end) {
      say(fmt::format("{} ends", e.which.fault));
      injector_.end(e.which);
    }
    if (o.quiet_begins) {
      facts_.quiet_at = world_.now();
      facts_.steps_before_quiet = facts_.steps.size();
      say("quiet: nothing more goes wrong");
    }
    for (const injection& i : o.begin) {
      std::string who;
      for (const member_id m : i.whom.members) who += " " + name_of_world_slot(m.value);
      say(fmt::format("{}: {}{} ({})", i.which.fault, name_of(i.kind), who, i.why));
      injector_.begin(i);
    }
    for (const refusal& r : o.refused) {
      say(fmt::format("{} is refused: {}", r.fault, r.why));
      facts_.refused.push_back(r);
    }
  }

  void start_again_who_ended() {
    if (world_.somebody_finished()) return;
    for (std::size_t i = 0; i < world_.size(); ++i) {
      if (world_.lives(i) || restarting_.contains(i) || injector_.stands_still(i)) continue;
      const auto& how = world_.ended(i);
      // Who has left is not wanted any more.
      if (how && (how->code == exit_code::interrupted || how->code == exit_code::ok)) continue;
      restarting_.insert(i);
      world_.at(world_.now() + restart_pause, [this, i] {
        restarting_.erase(i);
        if (world_.lives(i) || world_.somebody_finished()) return;
        say(fmt::format("{} is started again", name_of_world_slot(i)));
        injector_.new_life(i);
        changes_seen_[i] = 0;
        world_.revive(i);
      });
    }
  }

  void finish() {
    facts_.ended = world_.now();
    for (std::size_t i = 0; i < world_.size(); ++i) {
      if (const auto& how = world_.ended(i)) {
        say(fmt::format("{} has ended with {}: {}", name_of_world_slot(i),
                        static_cast<int>(how->code), how->why));
      } else {
        say(fmt::format("{} {}", name_of_world_slot(i), world_.lives(i) ? "lives" : "was killed"));
      }
    }
    facts_.faults = injector_.faults();
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
  schedule schedule_;
  world_injector injector_;
  run_facts facts_;
  std::set<std::string> points_;
  std::vector<point_reached> pending_;
  std::map<member_id, point_counter> passes_;
  std::set<std::size_t> restarting_;
  std::uint64_t redone_ = 0;
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
