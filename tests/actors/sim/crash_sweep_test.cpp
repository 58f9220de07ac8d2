// Every named point of a step and of a change of plans, times who reaches it, times what happens to
// that member in that moment: the run ends with the reference's bits each time.
#include <gmock/gmock.h>

#include <map>

#include "actors/sim/faults.hpp"
#include "actors/sim/invariants.hpp"
#include "actors/sim/world.hpp"

namespace troupe::actors::sim {
namespace {

using namespace std::chrono_literals;

enum class blow : std::uint8_t { kill, freeze, cut };
constexpr const char* names_of_blows[] = {"kill", "freeze and thaw", "cut and heal"};

// Tells of each point by name, and passes everything on to the invariants.
class point_watcher final : public world_watcher {
 public:
  explicit point_watcher(invariants& checked) : checked_(checked) {}
  std::function<void(member_id, const std::string& point, std::uint64_t step)> reached;

  void plan_adopted(member_id who, const protocol::plan& plan) override {
    checked_.plan_adopted(who, plan);
    coordinator = plan.coordinator;
    if (plan.number.value > 0) reached(who, "adopted", plan.number.value);
  }
  void promised(member_id who, generation next) override {
    checked_.promised(who, next);
    reached(who, "promised", next.value);
  }
  void copy_verified(member_id who, block_id block, std::uint64_t version) override {
    checked_.copy_verified(who, block, version);
    reached(who, "copy-verified", version);
  }
  void node_taken(member_id who, std::uint64_t step, const node_key& key) override {
    checked_.node_taken(who, step, key);
    reached(who, "node-taken", step);
  }
  void sum_held_by_backup(member_id who, std::uint64_t step, block_id block,
                          const hash128& hash) override {
    checked_.sum_held_by_backup(who, step, block, hash);
    reached(who, "grad-held", step);
  }
  void voted(member_id who, const protocol::vote& vote) override {
    checked_.voted(who, vote);
    reached(who, "voted", vote.step);
  }
  void record_seen(member_id who, const protocol::record_notice& notice) override {
    checked_.record_seen(who, notice);
    reached(who, "commit-seen", notice.record.step);
  }
  void block_applied(member_id who, block_id block, std::uint64_t version) override {
    checked_.block_applied(who, block, version);
    reached(who, "applied", version);
  }
  void layer_computed(member_id who, std::uint64_t step, std::uint32_t layer) override {
    checked_.layer_computed(who, step, layer);
    reached(who, "layer-computed", step);
  }
  void committed(member_id who, std::uint64_t step) override {
    checked_.committed(who, step);
    reached(who, "stable", step);
  }
  member_id coordinator;

 private:
  invariants& checked_;
};

struct sweep_case {
  std::string point;
  bool coordinator;  // the one who coordinates reaches it, else another one
  blow what;
};

// The world of each case also loses another member early, so that the points of a change are there.
std::string outcome_of(const sweep_case& c, bool& hit) {
  world_settings s;
  s.members = 4;
  s.steps = 40;
  s.backups = 2;  // two are away at a time
  invariants checked(s.toy, s.steps);
  point_watcher watcher(checked);
  hit = false;
  world* alive = nullptr;
  std::function<void(std::size_t)> strike;
  watcher.reached = [&](member_id who, const std::string& point, std::uint64_t at) {
    const bool early = at < 6 && point != "adopted" && point != "promised";
    if (hit || alive == nullptr || early || point != c.point || !alive->lives(who.value)) return;
    if ((who == watcher.coordinator) != c.coordinator) return;
    hit = true;
    // At the end of the handler that reached the point: a process is struck from the outside.
    alive->at(alive->now(), [&strike, who] { strike(who.value); });
  };
  world w(s, watcher);
  alive = &w;
  checked.watch([&w](member_id id) -> const toy_computation& { return w.device(id.value); });
  checked.watch_lives([&w](member_id id) { return w.life(id.value); });
  // A first loss in step 10, whose process comes again.
  fault_driver driver(w, {{.kind = fault_kind::kill,
                           .after_step = 10,
                           .and_then = 100us,
                           .target = 3,
                           .lasts = {},
                           .noticed = true}});
  strike = [&](std::size_t who) {
    driver.strike_now({.kind = c.what == blow::kill     ? fault_kind::kill
                               : c.what == blow::freeze ? fault_kind::freeze
                                                        : fault_kind::cut,
                       .after_step = 0,
                       .and_then = 0us,
                       .target = 0,
                       .lasts = 4s,
                       .noticed = true},
                      who);
  };
  driver.run(5min);
  alive = nullptr;  // members that are torn down still reach points
  if (checked.first()) return checked.first()->text();
  if (const std::string trouble = w.trouble(); !trouble.empty()) return trouble;
  checked.check_end(w.store());
  return checked.first() ? checked.first()->text() : "";
}

TEST(crash_sweep, every_point_times_role_times_blow_ends_with_the_same_bits) {
  // Only the coordinator announces; every other point can be anybody's.
  const std::vector<std::string> points = {
      "layer-computed", "node-taken", "grad-held", "voted",   "commit-seen",
      "applied",        "stable",     "promised",  "adopted", "copy-verified"};
  std::vector<std::string> never_hit;
  std::size_t cases = 0;
  for (const std::string& point : points) {
    for (const bool coordinator : {true, false}) {
      if (point == "stable" && !coordinator) continue;
      for (const blow what : {blow::kill, blow::freeze, blow::cut}) {
        const std::string name = point + (coordinator ? ", coordinator, " : ", another, ") +
                                 names_of_blows[static_cast<int>(what)];
        SCOPED_TRACE(name);
        bool hit = false;
        EXPECT_EQ(outcome_of({point, coordinator, what}, hit), "");
        if (!hit) never_hit.push_back(name);
        ++cases;
      }
    }
  }
  EXPECT_THAT(never_hit, testing::IsEmpty());
  RecordProperty("cases", static_cast<int>(cases));
}

}  // namespace
}  // namespace troupe::actors::sim
