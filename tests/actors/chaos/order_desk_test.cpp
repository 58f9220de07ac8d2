// The desk against the inboxes of workers that are not there.
#include "actors/chaos/order_desk.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "tests/actors/chaos/small_world.hpp"

namespace troupe::actors::chaos {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class order_desk_test : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/troupe-desk-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    plan_ = world_of(3).plan;
    desk_.emplace(folder_, 1);
    desk_->know(plan_);
    for (const protocol::plan_member& m : plan_.members) enter(m);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void enter(const protocol::plan_member& m) {
    auto inbox = order_inbox::open(real_file_system(), folder_, m.name, m.life);
    ASSERT_TRUE(inbox) << inbox.failure().message;
    inboxes_.insert_or_assign(m.id, std::move(*inbox));
  }
  std::vector<worker_order> taken(std::uint32_t member) {
    return inboxes_.at(member_id(member)).take();
  }
  void prove(std::uint32_t member, std::uint64_t id, std::uint64_t step = 0) {
    inboxes_.at(member_id(member)).prove({id, proof::kind::struck, step, "voted", {}, "so"});
  }
  static chosen members(std::vector<std::uint32_t> all) {
    chosen c;
    for (const std::uint32_t m : all) c.members.emplace_back(m);
    return c;
  }
  static injection of(fault_kind kind) {
    injection i;
    i.which = {"f", 1};
    i.kind = kind;
    return i;
  }
  static armed_fault armed(std::uint32_t member, std::uint64_t step) {
    return {{"f", 1}, fault_kind::kill, members({member}), {}, {"voted", {}}, {{step, step}}, {}};
  }

  std::string folder_;
  protocol::plan plan_;
  std::optional<order_desk> desk_;
  std::map<member_id, order_inbox> inboxes_;
};

TEST_F(order_desk_test, a_fault_of_members_is_an_order_to_each_and_proven_by_all) {
  const auto ids = desk_->give(of(fault_kind::hang), members({0, 2}), {}, {});
  ASSERT_THAT(ids, SizeIs(2));
  ASSERT_THAT(taken(0), SizeIs(1));
  EXPECT_THAT(taken(1), IsEmpty());
  prove(0, ids[0]);
  desk_->take_proofs();
  EXPECT_EQ(desk_->proven(ids, fault_kind::hang), "");
  prove(2, ids[1]);
  desk_->take_proofs();
  EXPECT_THAT(desk_->proven(ids, fault_kind::hang), HasSubstr("worker-2: so"));
}

TEST_F(order_desk_test, a_fault_of_links_is_an_order_to_each_end_that_sends) {
  chosen c = members({0, 1});
  c.links = {
      {member_id(0), member_id(1)}, {member_id(0), member_id(2)}, {member_id(1), member_id(0)}};
  const auto ids = desk_->give(of(fault_kind::cut), c, {}, {});
  ASSERT_THAT(ids, SizeIs(2));
  EXPECT_THAT(taken(0).at(0).towards, ElementsAre(member_id(1), member_id(2)));
  EXPECT_THAT(taken(1).at(0).towards, ElementsAre(member_id(0)));
  prove(1, ids[1]);
  desk_->take_proofs();
  EXPECT_NE(desk_->proven(ids, fault_kind::cut), "") << "one end may have nothing to say";
}

TEST_F(order_desk_test, who_takes_no_orders_refuses) {
  plan_.members[1].life = incarnation(99);
  desk_->know(plan_);
  const auto ids = desk_->give(of(fault_kind::exit), members({1}), {}, {});
  EXPECT_THAT(desk_->refused(ids), HasSubstr("worker-1 takes no orders"));
}

TEST_F(order_desk_test, what_is_armed_is_given_once_and_taken_back_when_it_is_not_wanted) {
  desk_->arm({armed(1, 5)});
  desk_->arm({armed(1, 5)});
  const auto first = taken(1);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0].when->first_step, 5U);
  desk_->arm({});
  const auto second = taken(1);
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_TRUE(second[0].withdrawn);
  EXPECT_EQ(second[0].id, first[0].id);
}

TEST_F(order_desk_test, what_was_armed_is_given_anew_to_a_later_life) {
  desk_->arm({armed(1, 5)});
  ASSERT_THAT(taken(1), SizeIs(1));
  plan_.members[1].life = incarnation(99);
  enter(plan_.members[1]);
  desk_->know(plan_);
  desk_->arm({armed(1, 5)});
  EXPECT_THAT(taken(1), SizeIs(1));
}

TEST_F(order_desk_test, what_struck_is_told_once_even_if_it_was_just_taken_back) {
  desk_->arm({armed(1, 5)});
  const auto given = taken(1);
  ASSERT_THAT(given, SizeIs(1));
  desk_->arm({});
  prove(1, given[0].id, 5);
  const auto struck = desk_->take_struck();
  ASSERT_THAT(struck, SizeIs(1));
  EXPECT_EQ(struck[0].who, member_id(1));
  EXPECT_EQ(struck[0].step, 5U);
  EXPECT_THAT(desk_->shown({"f", 1}), SizeIs(1));
  EXPECT_THAT(desk_->take_struck(), IsEmpty());
}

}  // namespace
}  // namespace troupe::actors::chaos
