// One member struck at one named point, in a world that lives through a loss already: which point,
// the how-manieth time in its step, who comes by it, and what happens to that member there. The
// strike falls into the call itself: of what the handler still does after it nothing leaves a
// killed member, what a frozen one sends leaves when it goes on, and a cut holds it.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/sim/faults.hpp"
#include "actors/sim/invariants.hpp"
#include "actors/sim/world.hpp"

namespace troupe::actors::sim {

using namespace std::chrono_literals;

// Of a member at that moment. Primary and backup are meant of one block, whose primary is not the
// coordinator; `another` computes and holds other blocks. Whoever came with the newest plan, or
// waits for the next, is a joiner.
enum class role : std::uint8_t {
  coordinator,
  primary,
  backup,
  another,
  not_coordinator,
  spare,
  joiner
};
inline constexpr const char* names_of_roles[] = {
    "coordinator", "primary", "backup", "another", "not the coordinator", "spare", "joiner"};

enum class blow : std::uint8_t { kill, freeze, hiccup, cut };
inline constexpr const char* names_of_blows[] = {"kill", "freeze and thaw", "freeze for a moment",
                                                 "cut and heal"};

struct sweep_case {
  protocol_point at;
  std::uint32_t k;  // in the member's step, and in its plan
  role who;
  blow what;
};

inline std::string to_text(const sweep_case& c) {
  return fmt::format("{}:{}, {}, {}", name_of(c.at), c.k, names_of_roles[static_cast<int>(c.who)],
                     names_of_blows[static_cast<int>(c.what)]);
}

// Checks the invariants, and knows who is what and how often somebody was where.
class watched_points final : public invariants {
 public:
  using invariants::invariants;
  std::function<void(member_id, protocol_point, std::uint32_t k)> at_point;

  void plan_adopted(member_id who, const protocol::plan& plan) override {
    invariants::plan_adopted(who, plan);
    present& p = members_[who];
    ++p.adopted;
    p.plan = plan;
    p.passes.begin_plan();
  }
  void reached(member_id who, protocol_point at, std::uint64_t step,
               std::optional<member_id>) override {
    const std::uint32_t k = members_[who].passes.count(at, step);
    if (at_point) at_point(who, at, k);
  }
  // A new process begins in the slot.
  void begins_anew(member_id who) { members_[who] = {}; }

  bool is(member_id who, role wanted) const {
    const auto known = members_.find(who);
    const bool came = known == members_.end() || !known->second.plan ||
                      (known->second.adopted == 1 && known->second.plan->number.value > 0);
    if (came || wanted == role::joiner) return came && wanted == role::joiner;
    const protocol::plan& plan = *known->second.plan;
    if (plan.coordinator == who || wanted == role::coordinator) {
      return plan.coordinator == who && wanted == role::coordinator;
    }
    if (wanted == role::not_coordinator) return true;
    const protocol::plan_member* m = plan.find(who);
    if (m == nullptr) return false;
    if (m->leaves == 0 || wanted == role::spare) return m->leaves == 0 && wanted == role::spare;
    for (const protocol::placed_blocks& part : plan.placement) {
      if (part.primary == plan.coordinator) continue;
      const bool backs_up = std::ranges::find(part.backups, who) != part.backups.end();
      if (wanted == role::primary) return part.primary == who;
      if (wanted == role::backup) return backs_up;
      return part.primary != who && !backs_up;
    }
    return false;
  }

 private:
  struct present {
    std::uint32_t adopted = 0;  // plans
    std::optional<protocol::plan> plan;
    point_counter passes;
  };
  std::map<member_id, present> members_;
};

struct sweep_outcome {
  bool hit = false;
  std::string trouble;  // "": the reference's bits
  std::string story;    // for whoever looks at a failure
};

enum class beginning : std::uint8_t {
  loss,               // a member is lost in step 10 and comes again
  coordinators_loss,  // the coordinator is
  leaving,            // the member that will be struck is told to leave in step 10
};

inline sweep_outcome outcome_of(const sweep_case& c, beginning first, std::uint64_t from_step) {
  world_settings s;
  s.members = c.who == role::spare ? 6 : 5;
  if (c.who == role::spare) s.toy.virtual_ranks = 4;
  // As many blocks as it takes for all roles to get copies.
  s.toy.layers = c.at == protocol_point::copy_verified && c.who != role::spare ? 4 : 3;
  s.steps = first == beginning::leaving ? 240 : 64;  // who leaves waits 300 ms for others
  s.backups = 2;                                     // two are away at a time
  world_parts parts = usual_parts();
  // A step takes about two milliseconds: a loss is noticed within some steps, and whoever is back
  // meets a world that has gone on.
  parts.adjust = [](member_id, worker_settings& worker, introductions_settings&) {
    worker.heartbeat = 2ms;
    worker.suspect = 8ms;
    worker.evict = 20ms;
  };
  sweep_outcome out;
  watched_points points(s.toy, s.steps);
  world w(s, points, parts);
  points.watch([&w](member_id id) -> const toy_computation& { return w.device(id.value); });
  points.watch_lives([&w](member_id id) { return w.life(id.value); });
  std::vector<fault> faults;
  if (first != beginning::leaving) {
    faults.push_back({.kind = fault_kind::kill,
                      .after_step = 10,
                      .and_then = 100us,
                      .target = first == beginning::loss ? 4u : 0u,
                      .lasts = {},
                      .noticed = true});
  }
  fault_driver driver(w, faults);
  std::vector<incarnation> lives(s.members, incarnation(1));
  bool told_to_leave = false;
  const fault struck{.kind = c.what == blow::kill  ? fault_kind::kill
                             : c.what == blow::cut ? fault_kind::cut
                                                   : fault_kind::freeze,
                     .after_step = 0,
                     .and_then = 0us,
                     .target = 0,
                     .lasts = c.what == blow::hiccup ? 12ms : 32ms,
                     .noticed = true};
  points.at_point = [&](member_id who, protocol_point at, std::uint32_t k) {
    if (lives[who.value] != w.life(who.value)) {
      lives[who.value] = w.life(who.value);
      points.begins_anew(who);
    }
    if (first == beginning::leaving && !told_to_leave && w.lines().size() >= 10) {
      told_to_leave = true;
      w.at(w.now(), [&] {
        for (std::size_t i = 0; i < w.size(); ++i) {
          if (!points.is(member_id(static_cast<std::uint32_t>(i)), c.who)) continue;
          driver.strike_now({.kind = fault_kind::leave,
                             .after_step = 0,
                             .and_then = 0us,
                             .target = 0,
                             .lasts = {},
                             .noticed = true},
                            i);
          return;
        }
      });
    }
    if (out.hit || at != c.at || k != c.k || w.lines().size() < from_step) return;
    if (points.is(who, c.who)) out.hit = driver.strike_now(struck, who.value);
  };
  driver.run(5min);
  points.at_point = {};
  for (const std::string& line : driver.told()) out.story += line + "\n";
  for (const protocol::plan& p : w.store().plans) {
    out.story += fmt::format("plan {}, base {}: {}\n", p.number.value, p.base, p.reason);
  }
  if (!points.first()) out.trouble = w.trouble();
  if (!points.first() && out.trouble.empty()) points.check_end(w.store());
  if (points.first()) out.trouble = points.first()->text();
  return out;
}

// Cases are collected and run on two threads at the end: a world is one thread's and shares
// nothing. CASES=all in the environment runs all of them; else what happens at a later message of
// one sending, and a member that only stands still for a moment, are left out. CASE is a part of
// the names of those that are run.
struct crash_sweep : testing::Test {
  void strike(protocol_point at, std::uint32_t k, const std::vector<role>& roles,
              beginning first = beginning::loss, std::uint64_t from_step = 10) {
    const char* wanted = std::getenv("CASE");
    const char* how_many = std::getenv("CASES");
    points_struck.insert(at);
    const bool all = wanted != nullptr || (how_many != nullptr && std::string(how_many) == "all");
    for (const role who : roles) {
      for (const blow what : {blow::kill, blow::freeze, blow::cut, blow::hiccup}) {
        if (!all && (what == blow::hiccup || (k > 1 && what != blow::kill))) continue;
        const sweep_case c{at, k, who, what};
        if (wanted != nullptr && to_text(c).find(wanted) == std::string::npos) continue;
        cases.push_back({c, first, from_step, {}});
      }
    }
  }
  static void TearDownTestSuite() {
    const auto* suite = testing::UnitTest::GetInstance()->current_test_suite();
    if (suite->test_to_run_count() < suite->total_test_count()) return;
    for (std::size_t i = 0; i < protocol_point_count; ++i) {
      const auto at = static_cast<protocol_point>(i);
      EXPECT_TRUE(points_struck.contains(at)) << "no case is at " << name_of(at);
    }
  }
  void TearDown() override {
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < cases.size(); i = next++) {
        one& o = cases[i];
        o.out = outcome_of(o.what, o.first, o.from_step);
      }
    };
    std::thread other(work);
    work();
    other.join();
    std::vector<std::string> never_hit;
    for (const one& o : cases) {
      EXPECT_EQ(o.out.trouble, "") << to_text(o.what) << "\n" << o.out.story;
      if (!o.out.hit) never_hit.push_back(to_text(o.what));
    }
    EXPECT_THAT(never_hit, testing::IsEmpty());
    std::printf("%zu cases, %zu hit\n", cases.size(), cases.size() - never_hit.size());
  }

  struct one {
    sweep_case what;
    beginning first;
    std::uint64_t from_step;
    sweep_outcome out;
  };
  std::vector<one> cases;
  static inline std::set<protocol_point> points_struck;
};

}  // namespace troupe::actors::sim
