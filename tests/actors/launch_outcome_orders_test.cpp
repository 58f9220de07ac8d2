// What a person asks for, as the launcher decides it: who leaves without being a loss, whose slot
// is filled again, and which slots are new.
#include <gmock/gmock.h>
#include <signal.h>

#include "actors/launch_outcome.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using enum standing;

launch_outcome world_of(std::size_t workers, int restarts = 10) {
  std::vector<launched_worker> all;
  for (std::size_t i = 0; i < workers; ++i) {
    all.push_back({"worker-" + std::to_string(i), static_cast<int>(100 + i), ""});
  }
  return {all,
          "gpu03",
          {.to_notice = seconds(2), .to_finish = seconds(20), .to_leave = seconds(5)},
          {.limit = restarts,
           .window = seconds(600),
           .first_pause = milliseconds(200),
           .longest_pause = seconds(30)}};
}
worker_end exited(int code) { return {.by_signal = false, .number = code}; }
worker_end killed(int signal) { return {.by_signal = true, .number = signal}; }

world_order leaves(std::vector<std::size_t> who) {
  world_order o;
  o.leave = std::move(who);
  return o;
}
world_order starts(std::vector<std::size_t> who) {
  world_order o;
  o.start = std::move(who);
  return o;
}

TEST(launch_outcome, who_leaves_on_demand_is_no_loss_and_its_slot_stays_empty) {
  for (const worker_end end : {exited(0), killed(SIGKILL), exited(69), exited(70)}) {
    launch_outcome o = world_of(3);
    EXPECT_THAT(o.take_on(leaves({2}), seconds(1)), ElementsAre(2));
    EXPECT_THAT(o.take_on(leaves({2}), seconds(1)), IsEmpty()) << "it is told once";
    o.in_world({in, in, out});
    o.ended(2, end, seconds(2));
    EXPECT_THAT(o.restarts_due(seconds(1000)), IsEmpty());
    EXPECT_EQ(o.next_due(), std::nullopt);
    EXPECT_THAT(o.take_news(), ElementsAre(HasSubstr("worker-2 (process 102)")));
    o.in_world({in, in, out});
    o.ended(0, exited(0), seconds(50));
    o.ended(1, exited(0), seconds(50));
    EXPECT_EQ(o.code(), 0);
    EXPECT_EQ(o.last_words(), "");
  }
}

TEST(launch_outcome, the_loss_of_one_that_stays_is_made_up_for_while_another_leaves) {
  launch_outcome o = world_of(3, 1);
  (void)o.take_on(leaves({2}), seconds(1));
  o.in_world({in, in, in});
  o.ended(1, killed(SIGKILL), seconds(2));
  EXPECT_THAT(o.restarts_due(seconds(2)), ElementsAre(1));
}

TEST(launch_outcome, a_slot_that_is_wanted_again_gets_a_process_with_a_fresh_budget) {
  launch_outcome o = world_of(2, 0);
  o.in_world({in, in});
  o.ended(1, killed(SIGKILL), seconds(1));
  EXPECT_THAT(o.restarts_due(seconds(1000)), IsEmpty());
  EXPECT_THAT(o.take_on(starts({1}), seconds(5)), IsEmpty());
  EXPECT_THAT(o.restarts_due(seconds(5)), ElementsAre(1));
  (void)o.take_news();
  o.restarted(1, 201);
  EXPECT_THAT(o.take_news(), ElementsAre("worker-1 started as process 201"));
}

TEST(launch_outcome, one_that_is_leaving_and_wanted_again_is_followed_once_it_has_left) {
  launch_outcome o = world_of(2);
  (void)o.take_on(leaves({1}), seconds(1));
  EXPECT_THAT(o.take_on(starts({1}), seconds(2)), IsEmpty());
  EXPECT_THAT(o.restarts_due(seconds(1000)), IsEmpty());
  o.in_world({in, out});
  o.ended(1, exited(0), seconds(3));
  EXPECT_THAT(o.restarts_due(seconds(3)), ElementsAre(1));
}

TEST(launch_outcome, new_slots_are_filled_and_may_be_lost_like_others) {
  launch_outcome o = world_of(1, 2);
  o.add({"worker-1", 0, ""});
  ASSERT_EQ(o.slots().size(), 2U);
  EXPECT_FALSE(o.slots()[1].running);
  EXPECT_FALSE(o.over());
  (void)o.take_on(starts({1}), seconds(1));
  ASSERT_THAT(o.restarts_due(seconds(1)), ElementsAre(1));
  o.restarted(1, 201);
  o.in_world({in, in});
  o.ended(1, killed(SIGKILL), seconds(2));
  EXPECT_THAT(o.restarts_due(seconds(2)), ElementsAre(1));
}

TEST(launch_outcome, who_was_told_to_leave_and_ends_with_all_others_makes_no_difference) {
  launch_outcome o = world_of(2);
  (void)o.take_on(leaves({1}), seconds(1));
  o.in_world({in, in});
  o.ended(1, exited(0), seconds(2));  // the last step was trained before it could leave
  EXPECT_TRUE(o.stops());
  o.ended(0, exited(0), seconds(2));
  EXPECT_EQ(o.code(), 0);
}

}  // namespace
}  // namespace troupe::actors
