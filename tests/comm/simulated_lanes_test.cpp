#include <gmock/gmock.h>

#include "tests/comm/simulated_world.hpp"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct bulk_world : world {
  explicit bulk_world(const network_conditions& c = {}) : world(2, 1, c) {
    for (process& p : processes) lanes.push_back(*p.way->open_bulk(generation(1), p));
    for (int i : {0, 1}) {
      EXPECT_TRUE(lanes[i]->connect(member_id(1 - i), lanes[1 - i]->local_address()));
    }
  }
  std::vector<std::unique_ptr<bulk_lane>> lanes;
};

bytes pattern(std::size_t size) {
  bytes made(size);
  for (std::size_t i = 0; i < size; ++i) made[i] = static_cast<std::byte>(i * 7 + i / 256);
  return made;
}

TEST(simulated_bulk, carries_small_and_large_messages) {
  bulk_world w;
  const bytes small = pattern(100), large = pattern(1 << 20), none;
  w.lanes[0]->send(member_id(1), text("small"), small, 1);
  w.lanes[0]->send(member_id(1), text("large"), large, 2);
  w.lanes[0]->send(member_id(1), text("none"), none, 3);
  EXPECT_THAT(w[0].tokens, IsEmpty());
  w.run();
  EXPECT_EQ(w[1].arriving["small"], small);
  EXPECT_EQ(w[1].arriving["large"], large);
  EXPECT_THAT(w[1].diary,
              testing::UnorderedElementsAre("bulk small 100", "bulk large 1048576", "bulk none 0"));
  EXPECT_THAT(w[0].tokens, testing::UnorderedElementsAre(1, 2, 3));
  EXPECT_EQ(w[0].way->sent().bulk_messages, 3u);
}

TEST(simulated_bulk, refuses_an_address_that_is_none) {
  bulk_world w;
  const status s = w.lanes[0]->connect(member_id(7), text("elsewhere"));
  ASSERT_FALSE(s);
  EXPECT_THAT(s.failure().message, HasSubstr("cannot reach member 7"));
}

TEST(simulated_bulk, an_unwanted_message_is_dropped_and_its_sender_free) {
  bulk_world w;
  w[1].wants_bulk = false;
  const bytes large = pattern(1 << 20);
  w.lanes[0]->send(member_id(1), text("x"), large, 5);
  w.run();
  EXPECT_THAT(w[1].diary, IsEmpty());
  EXPECT_THAT(w[0].tokens, ElementsAre(5));
}

TEST(simulated_bulk, touches_no_memory_of_an_ended_receiver) {
  bulk_world w;
  const bytes large = pattern(1 << 20);
  w.lanes[0]->send(member_id(1), text("late"), large, 1);
  w.run(w.network.now() + 5us);  // announced, a place was given
  ASSERT_THAT(w[1].arriving["late"], SizeIs(1 << 20));
  w.lanes[1].reset();
  w.run();
  EXPECT_EQ(w[1].arriving["late"], bytes(1 << 20));
  EXPECT_THAT(w[1].diary, IsEmpty());
  EXPECT_THAT(w[0].tokens, IsEmpty());
  EXPECT_EQ(w.network.counters().bulk_too_late, 1u);
}

TEST(simulated_bulk, loses_a_large_message_whose_sender_is_killed_and_delivers_a_small_one) {
  bulk_world w;
  {
    const bytes small = pattern(100), large = pattern(1 << 20);
    w.lanes[0]->send(member_id(1), text("small"), small, 1);
    w.lanes[0]->send(member_id(1), text("large"), large, 2);
    w.network.kill(w[0].id, 1ms);
  }  // its memory goes
  w.run();
  EXPECT_THAT(w[1].diary, ElementsAre("bulk small 100"));
}

TEST(simulated_bulk, a_copy_out_of_a_stopped_process_goes_on_when_it_continues) {
  bulk_world w;
  const bytes large = pattern(1 << 20);
  w.lanes[0]->send(member_id(1), text("large"), large, 2);
  w.network.stop(w[0].id);
  w.run();
  EXPECT_THAT(w[1].diary, IsEmpty());
  w.network.continue_process(w[0].id);
  w.run();
  EXPECT_THAT(w[1].diary, ElementsAre("bulk large 1048576"));
  EXPECT_EQ(w[1].arriving["large"], large);
}

TEST(simulated_bulk, takes_the_time_that_its_bandwidth_says) {
  network_conditions c;
  c.bulk_latency = 10us;
  c.bulk_bytes_per_second = 1'000'000'000;
  bulk_world w(c);
  const bytes large = pattern(1'000'000);
  w.lanes[0]->send(member_id(1), text("1"), large, 1);
  w.lanes[0]->send(member_id(1), text("2"), large, 2);
  w.run();
  EXPECT_EQ(w.network.now(), 2ms + 20us);
}

TEST(simulated_bulk, loses_and_damages_when_told_although_the_sender_sees_success) {
  network_conditions c;
  c.bulk_lose = 1;
  const bytes large = pattern(1 << 20), small = pattern(50);
  bulk_world lossy(c);
  lossy.lanes[0]->send(member_id(1), text("1"), large, 1);
  lossy.lanes[0]->send(member_id(1), text("2"), small, 2);
  lossy.run();
  EXPECT_THAT(lossy[0].tokens, ElementsAre(1, 2));
  EXPECT_THAT(lossy[1].diary, IsEmpty());

  c.bulk_lose = 0;
  c.bulk_damage = 1;
  bulk_world noisy(c);
  noisy.lanes[0]->send(member_id(1), text("1"), large, 1);
  noisy.lanes[0]->send(member_id(1), text("2"), small, 2);
  noisy.run();
  EXPECT_THAT(noisy[1].diary, SizeIs(2));
  EXPECT_NE(noisy[1].arriving["1"], large);
  EXPECT_NE(noisy[1].arriving["2"], small);
  EXPECT_EQ(large, pattern(1 << 20)) << "the sender's memory was damaged";
}

}  // namespace
}  // namespace troupe::comm
