// Who is started, who leaves and what a person is told, for every state that slots can be in.
#include "actors/world_order.hpp"

#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<slot_now> slots(std::size_t count, std::size_t coordinator = 0) {
  std::vector<slot_now> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back({.name = "worker-" + std::to_string(i), .coordinates = i == coordinator});
  }
  return all;
}
world_order scaled(std::uint64_t to, const std::vector<slot_now>& all, size_limits limits = {}) {
  return order_for(scale_wish{to}, all, limits, false);
}
world_order drained(const std::string& who, const std::vector<slot_now>& all,
                    size_limits limits = {}) {
  return order_for(drain_wish{who}, all, limits, false);
}

TEST(world_order, more_workers_get_new_slots_behind_the_last_one) {
  const world_order o = scaled(4, slots(2));
  EXPECT_EQ(o.code, exit_code::ok);
  EXPECT_EQ(o.words, "from 2 to 4 workers; starting worker-2, worker-3");
  EXPECT_EQ(o.add, 2u);
  EXPECT_THAT(o.start, IsEmpty());
  EXPECT_THAT(o.leave, IsEmpty());
}

TEST(world_order, empty_slots_are_filled_from_the_lowest_up_before_there_are_new_ones) {
  std::vector<slot_now> all = slots(4);
  all[1].wanted = all[1].running = false;
  all[3].wanted = all[3].running = false;
  EXPECT_THAT(scaled(3, all).start, ElementsAre(1));
  const world_order o = scaled(5, all);
  EXPECT_THAT(o.start, ElementsAre(1, 3));
  EXPECT_EQ(o.add, 1u);
}

TEST(world_order, surplus_workers_leave_from_the_highest_down_and_the_coordinator_last) {
  EXPECT_THAT(scaled(2, slots(4)).leave, ElementsAre(3, 2));
  EXPECT_THAT(scaled(1, slots(4)).leave, ElementsAre(3, 2, 1));
  EXPECT_THAT(scaled(1, slots(4, 3)).leave, ElementsAre(2, 1, 0));
  EXPECT_THAT(scaled(1, slots(4, 1)).leave, ElementsAre(3, 2, 0));
  EXPECT_EQ(scaled(1, slots(2)).words, "from 2 to 1 worker; worker-1 leaves");
}

TEST(world_order, a_slot_that_waits_for_its_restart_is_given_up_before_a_worker_that_runs) {
  std::vector<slot_now> all = slots(4);
  all[1].running = false;
  all[1].waits = true;
  EXPECT_THAT(scaled(3, all).leave, ElementsAre(1));
}

TEST(world_order, the_present_size_starts_only_what_is_missing) {
  EXPECT_EQ(scaled(3, slots(3)).words, "at 3 workers already");
  std::vector<slot_now> all = slots(3);
  all[2].running = false;  // its budget is spent
  const world_order o = scaled(3, all);
  EXPECT_THAT(o.start, ElementsAre(2));
  EXPECT_EQ(o.words, "at 3 workers already; starting worker-2");
  all[2].waits = true;
  EXPECT_THAT(scaled(3, all).start, IsEmpty());
}

TEST(world_order, one_that_is_leaving_and_is_wanted_again_is_followed) {
  std::vector<slot_now> all = slots(3);
  all[2].wanted = false;
  all[2].leaving = true;
  const world_order o = scaled(3, all);
  EXPECT_THAT(o.start, ElementsAre(2));
  EXPECT_EQ(o.words, "from 2 to 3 workers; worker-2 is leaving, and started again after that");
  EXPECT_THAT(scaled(2, all).start, IsEmpty());
  EXPECT_THAT(scaled(1, all).leave, ElementsAre(1));
}

TEST(world_order, sizes_that_make_no_sense_are_refused_in_words) {
  const world_order none = scaled(0, slots(2));
  EXPECT_EQ(none.code, exit_code::usage);
  EXPECT_THAT(none.words, HasSubstr("troupe stop"));
  const size_limits limits{.min_members = 2, .max_members = 8};
  EXPECT_THAT(scaled(1, slots(2), limits).words, HasSubstr("elastic.min_members = 2"));
  EXPECT_THAT(scaled(9, slots(2), limits).words, HasSubstr("elastic.max_members = 8"));
  EXPECT_EQ(scaled(9, slots(2), limits).code, exit_code::usage);
  EXPECT_EQ(scaled(9, slots(2), limits).add, 0u);
}

TEST(world_order, a_stopping_run_takes_nothing_on) {
  for (const world_wish& wish : {world_wish(scale_wish{4}), world_wish(drain_wish{"worker-1"})}) {
    const world_order o = order_for(wish, slots(2), {}, true);
    EXPECT_EQ(o.code, exit_code::cannot_use);
    EXPECT_THAT(o.words, HasSubstr("stopping"));
    EXPECT_THAT(o.leave, IsEmpty());
  }
}

TEST(world_order, one_worker_is_drained_whether_it_coordinates_or_not) {
  EXPECT_THAT(drained("worker-2", slots(3)).leave, ElementsAre(2));
  const world_order o = drained("worker-0", slots(3));
  EXPECT_THAT(o.leave, ElementsAre(0));
  EXPECT_EQ(o.words, "worker-0 leaves, 2 workers stay");
  EXPECT_EQ(o.from, 3u);
  EXPECT_EQ(o.to, 2u);
}

TEST(world_order, a_drain_that_cannot_be_is_refused_and_one_that_was_is_told) {
  const world_order last = drained("worker-0", slots(1));
  EXPECT_EQ(last.code, exit_code::usage);
  EXPECT_THAT(last.words, HasSubstr("worker-0 is the last worker"));
  const world_order unknown = drained("worker-7", slots(2));
  EXPECT_EQ(unknown.code, exit_code::usage);
  EXPECT_THAT(unknown.words, HasSubstr("which has worker-0, worker-1"));
  EXPECT_THAT(drained("worker-1", slots(2), {.min_members = 2}).words,
              HasSubstr("elastic.min_members"));
  std::vector<slot_now> all = slots(3);
  all[2].wanted = false;
  all[2].leaving = true;
  EXPECT_EQ(drained("worker-2", all).code, exit_code::ok);
  EXPECT_EQ(drained("worker-2", all).words, "worker-2 is leaving already");
  all[2].leaving = all[2].running = false;
  EXPECT_EQ(drained("worker-2", all).words, "worker-2 has left already");
  EXPECT_THAT(drained("worker-2", all).leave, IsEmpty());
}

TEST(world_order, wishes_are_read_as_they_are_printed_and_nothing_else) {
  for (const world_wish& wish : {world_wish(scale_wish{4}), world_wish(drain_wish{"worker-1"})}) {
    const auto read = parse_wish(to_text(wish));
    ASSERT_TRUE(read);
    EXPECT_EQ(to_text(*read), to_text(wish));
  }
  for (const char* const words :
       {"", "scale", "scale ", "scale x", "scale 4x", "drain ", "stop 1"}) {
    EXPECT_FALSE(parse_wish(words)) << words;
  }
}

}  // namespace
}  // namespace troupe::actors
