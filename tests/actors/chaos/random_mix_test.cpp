#include "actors/chaos/random_mix.hpp"

#include <gmock/gmock.h>

namespace troupe::actors::chaos {
namespace {

using testing::Contains;
using testing::Key;
using testing::Not;

TEST(weights_of, are_what_the_scenario_says) {
  random_faults r;
  r.kinds = {{fault_kind::kill, 4}, {fault_kind::join, 1}};
  EXPECT_EQ(weights_of(r, run_mode::process, 1), r.kinds);
}

TEST(weights_of, an_even_mix_are_all_that_the_mode_can_do) {
  const auto w = weights_of({}, run_mode::process, 1);
  EXPECT_THAT(w, Contains(Key(fault_kind::cpu_steal)));
  EXPECT_THAT(w, Contains(Key(fault_kind::cut)));
  EXPECT_THAT(weights_of({}, run_mode::sim, 1), Not(Contains(Key(fault_kind::cpu_steal))));
}

TEST(weights_of, the_field_kills_most_often) {
  random_faults r;
  r.mix = "field";
  const auto w = weights_of(r, run_mode::sim, 1);
  for (const auto& [kind, weight] : w) EXPECT_LE(weight, w.at(fault_kind::kill));
  EXPECT_THAT(w, Not(Contains(Key(fault_kind::join))));
}

TEST(weights_of, a_swarm_are_a_part_that_differs_from_seed_to_seed) {
  random_faults r;
  r.swarm = true;
  std::set<std::size_t> sizes;
  std::set<std::map<fault_kind, double>> all;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto w = weights_of(r, run_mode::sim, seed);
    EXPECT_EQ(w, weights_of(r, run_mode::sim, seed));
    sizes.insert(w.size());
    all.insert(w);
  }
  EXPECT_GE(*sizes.begin(), 1u);
  EXPECT_LT(*sizes.begin(), kind_table().size() / 2);
  EXPECT_GT(all.size(), 40u);
}

TEST(drawn, follows_the_weights) {
  const std::map<fault_kind, double> w = {{fault_kind::kill, 3}, {fault_kind::join, 1}};
  EXPECT_EQ(drawn(w, 0), fault_kind::kill);
  EXPECT_EQ(drawn(w, 0.74), fault_kind::kill);
  EXPECT_EQ(drawn(w, 0.76), fault_kind::join);
  EXPECT_EQ(drawn(w, 0.9999), fault_kind::join);
}

}  // namespace
}  // namespace troupe::actors::chaos
