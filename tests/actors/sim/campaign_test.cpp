#include "actors/sim/campaign.hpp"

#include <gmock/gmock.h>

namespace troupe::actors::sim {
namespace {

TEST(campaign, of_sixty_random_worlds_finds_nothing) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const seed_outcome outcome = run_seed(from_seed(seed));
    EXPECT_EQ(outcome.invariant, "") << "seed " << seed << ": " << outcome.what;
    EXPECT_GT(outcome.checks, 0u);
  }
}

TEST(campaign, draws_the_same_world_from_the_same_seed) {
  EXPECT_EQ(run_seed(from_seed(5)).fingerprint, run_seed(from_seed(5)).fingerprint);
  EXPECT_NE(run_seed(from_seed(5)).fingerprint, run_seed(from_seed(6)).fingerprint);
}

TEST(campaign, counts_what_it_ran_and_runs_one_seed_in_twenty_twice) {
  campaign_settings c;
  c.first_seed = 15;
  c.last_seed = 24;
  c.members = 3;
  c.steps = 4;
  const campaign_outcome outcome = run_campaign(c, {});
  EXPECT_EQ(outcome.seeds, 10u);
  EXPECT_EQ(outcome.twice, 1u);
  EXPECT_GT(outcome.network.frames, 0u);
  EXPECT_THAT(outcome.failures, testing::IsEmpty());
}

TEST(campaign, fixes_what_it_was_told_and_draws_the_rest) {
  campaign_settings c;
  c.members = 5;
  c.steps = 7;
  c.backups = 2;
  const world_settings s = settings_of(c, 9);
  EXPECT_EQ(s.members, 5u);
  EXPECT_EQ(s.steps, 7u);
  EXPECT_EQ(s.backups, 2u);
  EXPECT_EQ(s.toy.virtual_ranks, from_seed(9).toy.virtual_ranks);
}

TEST(campaign, gives_a_wide_world_more_to_share_out_and_finds_nothing_in_it) {
  campaign_settings c;
  c.members = 150;
  c.steps = 2;
  const world_settings s = settings_of(c, 1);
  EXPECT_EQ(s.toy.virtual_ranks, 150u);
  const seed_outcome outcome = run_seed(s);
  EXPECT_EQ(outcome.invariant, "") << outcome.what;
}

class forgets_its_update : public toy_computation {
  using toy_computation::toy_computation;
  void apply(block_id block, const protocol::decision_record& record, completion done) override {
    hash_sum(block, record.step, [done](trouble t, hash128) { done(t); });
  }
};

TEST(campaign, tells_of_a_failure_by_its_invariant) {
  world_parts parts = usual_parts();
  parts.computation = [](member_id, const toy_shape& toy, timeline& time, const clock_source& clock,
                         const toy_speed& speed, auto post, auto computed) {
    return std::make_unique<forgets_its_update>(toy, time, clock, speed, std::move(post),
                                                std::move(computed));
  };
  const seed_outcome outcome = run_seed(from_seed(7), parts);
  EXPECT_EQ(outcome.invariant, "S-2");
  EXPECT_THAT(outcome.what, testing::HasSubstr("skipped"));
}

}  // namespace
}  // namespace troupe::actors::sim
