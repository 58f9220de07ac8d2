#include "actors/router.hpp"

#include <gmock/gmock.h>

#include "actors/loop.hpp"
#include "actors/messages.hpp"

namespace troupe::actors {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr member_id here{2}, other{5}, third{7};

// Actors in all places of a router, and what came to whom.
struct router_test : testing::Test {
  manual_clock clock;
  std::vector<std::string> told;
  loop run{clock};
  router mail{here};
  std::vector<caf::actor> all;

  caf::actor somebody(const std::string& name) {
    all.push_back(run.system().spawn([this, name]() -> caf::behavior {
      return {
          [this, name](const incoming& m) {
            told.push_back(name + " from " + std::to_string(m.from.value));
          },
          [this, name](const outgoing&) { told.push_back("out by " + name); },
          [this, name](const to_be_linked& m) {
            told.push_back(name + " is to link " + std::to_string(m.to.value));
          },
      };
    }));
    return all.back();
  }
  void SetUp() override {
    mail.worker = somebody("worker");
    mail.coordinator = somebody("coordinator");
    mail.rank = somebody("rank");
    mail.primary_shards = {somebody("shard 0"), somebody("shard 1"), {}};
    mail.set_peer(other, somebody("peer 5"));
    mail.set_peer(third, somebody("peer 7"));
    mail.act_for(generation(1));
  }
  void TearDown() override {
    for (const caf::actor& a : all) caf::anon_send_exit(a, caf::exit_reason::kill);
  }
  std::vector<std::string> take() {
    while (run.run_ready()) {
    }
    return std::exchange(told, {});
  }
  std::vector<std::string> delivered(protocol::message what) {
    mail.deliver(other, generation(1), std::move(what));
    return take();
  }
};

TEST_F(router_test, delivers_every_kind_of_message_to_whom_it_concerns) {
  using namespace protocol;
  for (const message& m :
       {message(record_notice()), message(save_request()), message(go()), message(copy_plan())}) {
    EXPECT_THAT(delivered(m), ElementsAre("rank from 5"));
  }
  for (const message& m : {message(bulk_address()), message(ready()), message(vote()),
                           message(recorded()), message(validation_share()), message(save_share()),
                           message(heartbeat()), message(copies_held())}) {
    EXPECT_THAT(delivered(m), ElementsAre("coordinator from 5"));
  }
  for (const message& m :
       {message(plan_notice()), message(address_table()), message(farewell()), message(collect()),
        message(promise()), message(promise_refused()), message(member_gone())}) {
    EXPECT_THAT(delivered(m), ElementsAre("worker from 5"));
  }
  EXPECT_THAT(delivered(sum_held{1, {1, 0}, {}}), ElementsAre("shard 1 from 5"));
  EXPECT_THAT(delivered(copy_wish{{1, 0}}), ElementsAre("shard 1 from 5"));
}

TEST_F(router_test, drops_what_nobody_here_is_there_for) {
  EXPECT_THAT(delivered(protocol::sum_held{1, {2, 0}, {}}), IsEmpty());
  EXPECT_THAT(delivered(protocol::sum_held{1, {9, 0}, {}}), IsEmpty());
  mail.rank = {};
  EXPECT_THAT(delivered(protocol::go()), IsEmpty());
}

TEST_F(router_test, brings_a_wish_to_stop_to_the_worker_also_where_there_is_no_coordinator) {
  mail.coordinator = {};
  EXPECT_THAT(delivered(protocol::stop_wish()), ElementsAre("worker from 5"));
}

TEST_F(router_test, sends_to_others_by_their_peers_and_to_itself_directly) {
  mail.send(other, protocol::go());
  EXPECT_THAT(take(), ElementsAre("out by peer 5"));
  mail.send(here, protocol::go());
  EXPECT_THAT(take(), ElementsAre("rank from 2"));
  mail.send(member_id(9), protocol::go());
  EXPECT_THAT(take(), ElementsAre("worker is to link 9")) << "nobody has met it";
  mail.remove_peer(other);
  mail.send(other, protocol::go());
  EXPECT_THAT(take(), ElementsAre("worker is to link 5"));
}

TEST_F(router_test, knows_who_coordinates) {
  mail.set_coordinator(third);
  mail.to_coordinator(protocol::ready());
  EXPECT_THAT(take(), ElementsAre("out by peer 7"));
  mail.set_coordinator(here);
  mail.to_coordinator(protocol::ready());
  EXPECT_THAT(take(), ElementsAre("coordinator from 2"));
}

TEST_F(router_test, tells_all_others_and_itself) {
  mail.broadcast(protocol::go());
  EXPECT_THAT(take(), UnorderedElementsAre("out by peer 5", "out by peer 7", "rank from 2"));
}

// H-04, H-22: whoever is still in an earlier plan has no voice.
TEST_F(router_test, drops_what_was_said_about_a_step_in_an_older_plan) {
  mail.act_for(generation(2));
  EXPECT_THAT(delivered(protocol::record_notice()), IsEmpty());
  EXPECT_THAT(delivered(protocol::vote()), IsEmpty());
  EXPECT_THAT(delivered(protocol::sum_held{1, {1, 0}, {}}), IsEmpty());
  EXPECT_EQ(mail.refused(), 3u);
  mail.act_for(generation(3));
  EXPECT_THAT(take(), IsEmpty()) << "it does not come back either";
}

TEST_F(router_test, drops_what_comes_in_a_plan_after_the_next_one_was_promised) {
  mail.act_for(std::nullopt);
  EXPECT_THAT(delivered(protocol::record_notice()), IsEmpty());
  EXPECT_EQ(mail.refused(), 1u);
  mail.act_for(generation(2));
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(router_test, keeps_what_comes_in_a_newer_plan_until_that_is_acted_for) {
  const auto said_in = [&](std::uint32_t plan, protocol::message what) {
    mail.deliver(other, generation(plan), std::move(what));
    return take();
  };
  EXPECT_THAT(said_in(2, protocol::go()), IsEmpty());
  mail.act_for(std::nullopt);  // promised; some have adopted the plan already
  EXPECT_THAT(said_in(2, protocol::ready()), IsEmpty());
  EXPECT_THAT(said_in(3, protocol::record_notice()), IsEmpty());
  mail.act_for(generation(2));
  EXPECT_THAT(take(), ElementsAre("rank from 5", "coordinator from 5")) << "in their order";
  mail.act_for(generation(3));
  EXPECT_THAT(take(), ElementsAre("rank from 5"));
  EXPECT_EQ(mail.refused(), 0u);
}

TEST_F(router_test, drops_what_was_kept_for_a_plan_that_was_never_adopted) {
  mail.deliver(other, generation(2), protocol::go());
  mail.act_for(generation(3));
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(mail.refused(), 1u);
}

TEST_F(router_test, keeps_no_more_than_a_bound_of_early_messages) {
  for (int i = 0; i < 5000; ++i) mail.deliver(other, generation(2), protocol::go());
  EXPECT_GT(mail.refused(), 0u);
  const std::uint64_t refused = mail.refused();
  mail.act_for(generation(2));
  EXPECT_EQ(take().size() + refused, 5000u);
}

TEST_F(router_test, of_a_member_without_a_plan_keeps_what_comes_early) {
  router fresh(here);
  fresh.rank = mail.rank;
  fresh.deliver(other, generation(7), protocol::go());
  EXPECT_THAT(take(), IsEmpty());
  fresh.act_for(generation(7));
  EXPECT_THAT(take(), ElementsAre("rank from 5"));
}

// Who promises, and to what, cannot depend on the plan that the question came in.
TEST_F(router_test, tells_the_worker_about_members_and_plans_whatever_plan_it_was_said_in) {
  using namespace protocol;
  for (const std::optional<generation> acting :
       {std::optional(generation(5)), std::optional<generation>()}) {
    mail.act_for(acting);
    for (const std::uint32_t plan : {0u, 5u, 9u}) {
      for (const message& m :
           {message(plan_notice()), message(farewell()), message(collect()), message(promise()),
            message(promise_refused()), message(member_gone())}) {
        mail.deliver(other, generation(plan), m);
        EXPECT_THAT(take(), ElementsAre("worker from 5"));
      }
    }
  }
}

}  // namespace
}  // namespace troupe::actors
