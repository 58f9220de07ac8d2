// A plan of four members, and the answers that they may give to whoever collects promises.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/protocol/collection.hpp"
#include "actors/protocol/plan_change.hpp"
#include "tests/actors/protocol/random_world.hpp"

namespace troupe::actors::protocol {

inline constexpr std::uint64_t base = 10;
inline constexpr member_id m0{0}, m1{1}, m2{2}, m3{3}, newcomer{9};

inline record_notice notice_of(std::uint64_t step, std::uint64_t lines = 0) {
  record_notice n;
  n.record.step = step;
  n.record.lr = static_cast<float>(step);
  n.lines = lines;
  n.plan = generation(3);
  return n;
}

inline candidate somebody(member_id id, std::uint64_t life = 1) {
  candidate c;
  c.id = id;
  c.life = incarnation(life);
  c.name = "worker-" + std::to_string(id.value);
  c.host = "host-of-" + std::to_string(id.value);
  c.address = "10.0.0.2:4000";
  return c;
}

inline bool holds(const plan& p, member_id id, block_id block) {
  const placed_blocks& part = p.holders_of(block);
  return part.primary == id || std::ranges::binary_search(part.backups, id);
}

// Four members, two layers of four blocks with one backup each, at version 10 in plan 3.
class collection_test : public testing::Test {
 protected:
  void SetUp() override {
    planner_input in = equal_world(4, 8, 2, 8, 1);
    for (candidate& c : in.candidates) c.life = incarnation(1);
    in.number = generation(3);
    in.base = base;
    present = make_plan(in);
    present.records = {notice_of(base)};
    settings.layers = in.layers;
    settings.coordinator = m0;
    settings.parent = "hash of plan 3";
    settings.reason = "test";
    all.emplace(present);
  }

  std::vector<block_id> blocks() const {
    std::vector<block_id> found;
    for (const placed_blocks& b : block_by_block(present))
      found.push_back({b.layer, b.first_block});
    return found;
  }
  std::vector<block_id> held_by(member_id id) const {
    std::vector<block_id> found;
    for (const block_id b : blocks()) {
      if (holds(present, id, b)) found.push_back(b);
    }
    return found;
  }
  // A member that has seen `seen` and has all of its blocks at `version`.
  promise answer(member_id id, std::uint64_t seen, std::uint64_t version, bool next_sum = false) {
    promise p;
    p.next = generation(4);
    p.of_plan = true;
    p.seen = seen;
    for (std::uint64_t s = base; s <= seen; ++s) p.records.push_back(notice_of(s));
    for (const block_id b : held_by(id)) p.blocks.push_back({b, version, next_sum, false});
    return p;
  }
  promise answer(member_id id, std::uint64_t seen = base) { return answer(id, seen, seen); }
  static promise anew() {
    promise p;
    p.next = generation(4);
    return p;
  }
  std::variant<plan, std::vector<block_id>> made(const std::vector<candidate>& newcomers = {}) {
    return next_plan(*all, present, newcomers, settings);
  }
  plan published(const std::vector<candidate>& newcomers = {}) {
    auto one = made(newcomers);
    EXPECT_TRUE(std::holds_alternative<plan>(one));
    return std::holds_alternative<plan>(one) ? std::get<plan>(one) : plan();
  }
  static std::vector<member_id> members_of(const plan& p) {
    std::vector<member_id> ids;
    for (const plan_member& m : p.members) ids.push_back(m.id);
    return ids;
  }

  plan present;
  next_plan_settings settings;
  std::optional<collection> all;
};

}  // namespace troupe::actors::protocol
