#include "actors/world_counters.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace troupe::actors {
namespace {

TEST(world_counters, a_bucket_holds_what_is_at_most_its_bound) {
  histogram h;
  for (const double seconds : {0.0, 0.01, 0.011, 1.0, 299.0, 300.0, 301.0}) h.add(seconds);
  EXPECT_EQ(h.up_to(0), 2U);
  EXPECT_EQ(h.up_to(1), 3U);
  EXPECT_EQ(h.up_to(6), 4U);
  EXPECT_EQ(h.up_to(histogram::bounds.size() - 1), 6U);
  EXPECT_EQ(h.count(), 7U);
  EXPECT_DOUBLE_EQ(h.sum(), 0.01 + 0.011 + 1 + 299 + 300 + 301);
}

TEST(world_counters, buckets_never_shrink_with_their_bound) {
  histogram h;
  for (int i = 0; i < 1000; ++i) h.add(0.003 * i * i);
  for (std::size_t i = 1; i < histogram::bounds.size(); ++i) {
    EXPECT_LT(histogram::bounds[i - 1], histogram::bounds[i]);
    EXPECT_LE(h.up_to(i - 1), h.up_to(i));
  }
  EXPECT_EQ(h.count(), 1000U);
}

TEST(world_counters, a_time_that_is_none_takes_nothing_away) {
  histogram h;
  h.add(1);
  h.add(-5);
  h.add(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(h.count(), 3U);
  EXPECT_EQ(h.sum(), 1);
}

TEST(world_counters, each_enumerator_has_its_place_and_its_name) {
  by_phase<double> seconds;
  seconds[step_phase::wait] = 2;
  EXPECT_EQ(seconds.values.back(), 2);
  EXPECT_EQ(step_phase_names[static_cast<std::size_t>(step_phase::backward)], "backward");
  EXPECT_EQ(lane_names[static_cast<std::size_t>(lane::bulk)], "bulk");
}

TEST(world_counters, the_words_of_a_loss_tell_its_kind) {
  EXPECT_EQ(loss_kind_of("nothing was heard of it for 1000 ms (fault_tolerance.evict_ms)"),
            loss_kind::heartbeat);
  EXPECT_EQ(loss_kind_of("its link broke: connection reset"), loss_kind::endpoint);
  EXPECT_EQ(loss_kind_of("was killed by signal 9 (Killed)"), loss_kind::exit);
  EXPECT_EQ(loss_kind_of("a new process has come in its slot"), loss_kind::exit);
  EXPECT_EQ(loss_kind_of("it did not answer in time"), loss_kind::heartbeat);
  EXPECT_EQ(loss_kind_of("no progress for 60 s"), loss_kind::stall);
  EXPECT_EQ(loss_kind_of("its sum has another hash"), loss_kind::corrupt);
}

}  // namespace
}  // namespace troupe::actors
