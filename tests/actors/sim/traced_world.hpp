// A world with faults at points of the protocol, and the invariants watching it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/sim/invariants.hpp"
#include "actors/sim/world.hpp"

namespace troupe::actors::sim {

using namespace std::chrono_literals;

// Tells the invariants everything, and a test what it asked for. What a test is told it must not
// act on at once, in the middle of an actor's turn: it enters what is to happen in the timeline.
class told_points final : public world_watcher {
 public:
  explicit told_points(invariants& to) : to_(to) {}

  std::function<void(member_id, std::uint64_t step)> seen, announced;
  std::function<void(member_id, block_id, std::uint64_t version)> applied, copied;
  std::function<void(member_id, generation)> promise;

  void plan_adopted(member_id m, const protocol::plan& p) override { to_.plan_adopted(m, p); }
  void node_taken(member_id m, std::uint64_t step, const node_key& key) override {
    to_.node_taken(m, step, key);
  }
  void sum_held_by_backup(member_id m, std::uint64_t step, block_id block,
                          const hash128& hash) override {
    to_.sum_held_by_backup(m, step, block, hash);
  }
  void voted(member_id m, const protocol::vote& vote) override { to_.voted(m, vote); }
  void record_seen(member_id m, const protocol::record_notice& n) override {
    to_.record_seen(m, n);
    if (seen) seen(m, n.record.step);
  }
  void block_applied(member_id m, block_id block, std::uint64_t version) override {
    to_.block_applied(m, block, version);
    if (applied) applied(m, block, version);
  }
  void committed(member_id m, std::uint64_t step) override {
    to_.committed(m, step);
    if (announced) announced(m, step);
  }
  void layer_computed(member_id m, std::uint64_t step, std::uint32_t layer) override {
    to_.layer_computed(m, step, layer);
  }
  void copy_verified(member_id m, block_id block, std::uint64_t version) override {
    to_.copy_verified(m, block, version);
    if (copied) copied(m, block, version);
  }
  void promised(member_id m, generation next) override {
    to_.promised(m, next);
    if (promise) promise(m, next);
  }

 private:
  invariants& to_;
};

struct traced_world : testing::Test {
  world_settings s;
  std::unique_ptr<invariants> checked;
  std::unique_ptr<told_points> points;
  std::unique_ptr<world> w;

  traced_world() {
    s.members = 4;
    s.steps = 100;
    s.backups = 2;  // any two members of four hold every block
  }

  void start() {
    w.reset();
    checked = std::make_unique<invariants>(s.toy, s.steps);
    points = std::make_unique<told_points>(*checked);
    world_parts parts = usual_parts();
    // A step takes about two milliseconds: a loss is noticed within some steps.
    parts.adjust = [](member_id, worker_settings& worker, introductions_settings&) {
      worker.heartbeat = 2ms;
      worker.suspect = 15ms;
      worker.evict = 45ms;
    };
    w = std::make_unique<world>(s, *points, parts);
    checked->watch(
        [at = w.get()](member_id id) -> const toy_computation& { return at->device(id.value); });
    checked->watch_lives([at = w.get()](member_id id) { return at->life(id.value); });
  }
  template <class Enough>
  void run_until(Enough enough, std::chrono::nanoseconds at_most = 120s) {
    const time_since_start end = w->now() + at_most;
    while (!enough() && w->now() < end && w->step_on()) {
    }
    ASSERT_TRUE(enough()) << story();
  }
  // Where everybody is, for whoever looks at a world that stands still.
  std::string story() {
    std::string text = "after " + std::to_string(w->now() / 1ms) + " ms, " +
                       std::to_string(w->lines().size()) + " steps: " + w->trouble() + "\n";
    for (const protocol::plan& p : w->store().plans) {
      text += "plan " + std::to_string(p.number.value) + " of";
      for (const protocol::plan_member& m : p.members) {
        text += " " + std::to_string(m.id.value) + "/" + std::to_string(m.life.value);
      }
      text += ", base " + std::to_string(p.base) + ": " + p.reason + "\n";
    }
    for (std::size_t i = 0; i < w->size(); ++i) {
      text += "member " + std::to_string(i) + "/" + std::to_string(w->life(i).value) +
              (w->ended(i)   ? " ended: " + w->ended(i)->why
               : w->lives(i) ? " lives"
                             : " was killed") +
              "\n";
      for (const std::string& why : w->records(i).refused) text += "  it said: " + why + "\n";
    }
    return text;
  }
  void run_until_step(std::uint64_t step) {
    run_until([&] { return w->lines().size() >= step; });
  }
  void run_for(std::chrono::nanoseconds time) {
    const time_since_start end = w->now() + time;
    while (w->now() < end && w->step_on()) {
    }
  }
  void soon(std::chrono::nanoseconds pause, std::function<void()> what) {
    w->at(w->now() + pause, std::move(what));
  }
  // Both ways.
  void cut(std::size_t a, std::size_t b, bool cut = true) {
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      if (cut) {
        w->network().cut(w->process(from), w->process(to));
      } else {
        w->network().heal(w->process(from), w->process(to));
      }
    }
  }
  void cut_between(const std::vector<std::size_t>& left, const std::vector<std::size_t>& right,
                   bool severed = true) {
    for (const std::size_t a : left) {
      for (const std::size_t b : right) cut(a, b, severed);
    }
  }
  std::vector<std::uint32_t> members_of_plan(std::size_t number) {
    std::vector<std::uint32_t> ids;
    for (const protocol::plan_member& m : w->store().plans.at(number).members) {
      ids.push_back(m.id.value);
    }
    return ids;
  }
  // Whoever has ended by a loss comes again, as a launcher would have it.
  void start_again_who_ended() {
    for (std::size_t i = 0; i < w->size(); ++i) {
      if (!w->lives(i)) w->revive(i);
    }
  }
  // The run comes to its end, with nothing wrong on the way.
  void expect_same_bits() {
    run_until([&] { return w->over(); }, 600s);
    EXPECT_EQ(w->trouble(), "");
    if (!checked->first()) checked->check_end(w->store());
    EXPECT_FALSE(checked->first()) << checked->first()->text();
    // L-5: two for a loss, two for whoever comes; here at most two of each.
    EXPECT_LE(w->store().plans.size(), 9u) << story();
  }
};

}  // namespace troupe::actors::sim
