#include "comm/checked_lane.hpp"

#include <gmock/gmock.h>

#include "tests/comm/simulated_world.hpp"

namespace troupe::comm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct checked_lane_test : testing::Test {
  simulated_network network{1, {}};
  process sender, receiver;
  std::unique_ptr<bulk_lane> from, to, raw;
  std::vector<std::string> trouble;
  bytes payload = text("numbers");

  checked_lane_test() {
    for (process* p : {&sender, &receiver}) {
      auto made = network.add_process();
      p->id = made.id;
      p->way = std::move(made.transport);
      p->way->start(*p);
    }
    from = open(sender);
    to = open(receiver);
    EXPECT_TRUE(from->connect(member_id(1), to->local_address()));
    raw = std::move(*sender.way->open_bulk(generation(1), sender));
    EXPECT_TRUE(raw->connect(member_id(1), to->local_address()));
  }
  std::unique_ptr<bulk_lane> open(process& of) {
    auto lane = checked_lane::open(*of.way, generation(1), of,
                                   [this](const std::string& why) { trouble.push_back(why); });
    EXPECT_TRUE(lane);
    return std::move(*lane);
  }
  void run() {
    while (const auto next = network.next_event()) {
      network.advance_to(*next);
      (void)network.take_ready();
      receiver.way->progress();
      sender.way->progress();
    }
  }
};

TEST_F(checked_lane_test, what_is_whole_arrives_with_the_header_that_was_given) {
  from->send(member_id(1), text("a"), payload, 7);
  from->send(member_id(1), text("empty"), {}, 8);
  run();
  EXPECT_THAT(receiver.diary, testing::UnorderedElementsAre("bulk a 7", "bulk empty 0"));
  EXPECT_EQ(words(receiver.arriving["a"]), "numbers");
  EXPECT_THAT(sender.tokens, SizeIs(2));
  EXPECT_THAT(trouble, IsEmpty());
}

TEST_F(checked_lane_test, one_changed_bit_is_noticed_and_not_delivered) {
  network_conditions c;
  c.bulk_damage = 1;
  network.set_conditions(c);
  from->send(member_id(1), text("a"), payload, 7);
  run();
  EXPECT_THAT(receiver.diary, IsEmpty());
  EXPECT_THAT(trouble, ElementsAre(HasSubstr("another hash")));
  EXPECT_THAT(sender.tokens, ElementsAre(7)) << "the sender's memory is free again";
}

TEST_F(checked_lane_test, a_changed_header_finds_no_place) {
  raw->send(member_id(1), text("a header that nobody has signed for, whatever it says"), payload,
            7);
  raw->send(member_id(1), text("short"), payload, 8);
  run();
  EXPECT_THAT(receiver.diary, IsEmpty());
  EXPECT_THAT(trouble, ElementsAre(HasSubstr("header"), HasSubstr("header")));
}

}  // namespace
}  // namespace troupe::comm
