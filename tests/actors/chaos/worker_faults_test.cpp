#include "actors/chaos/worker_faults.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class worker_faults_test : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/troupe-faults-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    auto inbox = order_inbox::open(files_, folder_, "worker-0", incarnation(1));
    ASSERT_TRUE(inbox);
    faults_.emplace(std::move(*inbox), clock_, links_);
    auto outbox = order_outbox::open(files_, folder_, "worker-0", incarnation(1));
    ASSERT_TRUE(outbox);
    injector_.emplace(std::move(*outbox));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void give(fault_kind kind, const std::string& point = "", std::uint64_t step = 0,
            parameters params = {}) {
    worker_order o;
    o.id = ++given_;
    o.kind = kind;
    o.params = std::move(params);
    if (!point.empty()) o.when = order_moment{*parse_point(point), step, step};
    ASSERT_TRUE(injector_->give(o));
  }

  file_system& files_ = real_file_system();
  manual_clock clock_;
  comm::message_faults links_;
  std::string folder_;
  std::optional<worker_faults> faults_;
  std::optional<order_outbox> injector_;
  std::uint64_t given_ = 0;
};

TEST_F(worker_faults_test, nothing_happens_without_an_order) {
  faults_->reached("voted", 1, 0);
  faults_->turn();
  EXPECT_THAT(injector_->take_proofs(), IsEmpty());
}

TEST_F(worker_faults_test, an_exit_at_a_point_has_its_code_and_proves_it_first) {
  give(fault_kind::exit, "voted", 5, {{"code", std::int64_t{9}}});
  faults_->reached("voted", 4, 0);
  EXPECT_EXIT(faults_->reached("voted", 5, 0), testing::ExitedWithCode(9), "");
  const auto proofs = injector_->take_proofs();  // written by the process that has ended
  ASSERT_THAT(proofs, SizeIs(1));
  EXPECT_EQ(proofs[0].point, "voted");
  EXPECT_EQ(proofs[0].step, 5U);
}

TEST_F(worker_faults_test, a_kill_at_once_comes_with_the_next_turn) {
  give(fault_kind::kill);
  EXPECT_EXIT(faults_->turn(), testing::KilledBySignal(SIGKILL), "");
}

TEST_F(worker_faults_test, an_exception_is_thrown_in_the_actor_that_was_meant) {
  give(fault_kind::throws, "", 0, {{"actor", std::string("rank")}});
  faults_->turn();
  faults_->reached("applied", 3, 0);  // in no actor
  faults_->reached("promised", 3, 0);
  EXPECT_THAT(injector_->take_proofs(), IsEmpty());
  EXPECT_THROW(faults_->reached("voted", 3, 0), std::runtime_error);
  const auto proofs = injector_->take_proofs();
  ASSERT_THAT(proofs, SizeIs(1));
  EXPECT_THAT(proofs[0].words, HasSubstr("in the rank at voted of step 3"));
  faults_->reached("voted", 4, 0);
}

TEST_F(worker_faults_test, every_actor_that_can_be_named_is_at_some_point) {
  const std::vector<std::string> points = {"step-begin", "voted", "grad-held", "stable",
                                           "promised"};
  for (const std::string& actor : throwing_actors()) {
    EXPECT_TRUE(std::ranges::any_of(points, [&](const auto& p) { return actor_at(p) == actor; }))
        << actor;
  }
}

TEST_F(worker_faults_test, a_fault_of_links_is_proven_by_its_first_message_and_ends_in_time) {
  worker_order o;
  o.id = 7;
  o.kind = fault_kind::drop;
  o.towards = {member_id(2)};
  o.lasts = 50ms;
  ASSERT_TRUE(injector_->give(o));
  faults_->turn();
  (void)links_.decide(comm::message_plane::control, member_id(1), "", 8);
  faults_->turn();
  EXPECT_THAT(injector_->take_proofs(), IsEmpty());
  EXPECT_TRUE(links_.decide(comm::message_plane::control, member_id(2), "", 8).lost);
  faults_->turn();
  EXPECT_THAT(injector_->take_proofs(), SizeIs(1));
  clock_.advance(50ms);
  faults_->turn();
  const auto proofs = injector_->take_proofs();
  ASSERT_THAT(proofs, SizeIs(1));
  EXPECT_EQ(proofs[0].what, proof::kind::over);
  EXPECT_THAT(proofs[0].words, HasSubstr("1 messages were struck"));
  EXPECT_TRUE(links_.idle());
}

TEST_F(worker_faults_test, what_a_worker_cannot_do_is_answered) {
  give(fault_kind::join);
  faults_->turn();
  const auto proofs = injector_->take_proofs();
  ASSERT_THAT(proofs, SizeIs(1));
  EXPECT_EQ(proofs[0].what, proof::kind::failed);
}

}  // namespace
}  // namespace troupe::actors::chaos
