#include "actors/chaos/order_files.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

namespace troupe::actors::chaos {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class order_files_test : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/troupe-orders-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    folder_ = root_ + "/chaos";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  result<order_inbox> inbox(std::uint64_t life = 1) {
    return order_inbox::open(files_, folder_, "worker-2", incarnation(life));
  }
  result<order_outbox> outbox(std::uint64_t life = 1) {
    return order_outbox::open(files_, folder_, "worker-2", incarnation(life));
  }
  static worker_order order(std::uint64_t id) {
    worker_order o;
    o.id = id;
    return o;
  }

  file_system& files_ = real_file_system();
  std::string root_, folder_;
};

TEST_F(order_files_test, an_order_arrives_once_and_rings_before) {
  auto worker = inbox();
  ASSERT_TRUE(worker) << worker.failure().message;
  auto injector = outbox();
  ASSERT_TRUE(injector) << injector.failure().message;
  EXPECT_FALSE(worker->rings());
  ASSERT_TRUE(injector->give(order(4)));
  ASSERT_TRUE(injector->give(order(5)));
  EXPECT_TRUE(worker->rings());
  const auto got = worker->take();
  ASSERT_THAT(got, SizeIs(2));
  EXPECT_EQ(got[1].id, 5U);
  EXPECT_FALSE(worker->rings());
  EXPECT_THAT(worker->take(), IsEmpty());
}

TEST_F(order_files_test, a_proof_comes_back) {
  auto worker = inbox();
  auto injector = outbox();
  ASSERT_TRUE(worker && injector);
  EXPECT_THAT(injector->take_proofs(), IsEmpty());
  worker->prove({4, proof::kind::struck, 7, "voted", std::chrono::seconds(1), "so"});
  const auto got = injector->take_proofs();
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].step, 7U);
  EXPECT_THAT(injector->take_proofs(), IsEmpty());
}

TEST_F(order_files_test, an_order_is_for_one_life_alone) {
  auto first = inbox(1), second = inbox(2);
  auto injector = outbox(2);
  ASSERT_TRUE(first && second && injector);
  ASSERT_TRUE(injector->give(order(1)));
  EXPECT_FALSE(first->rings());
  EXPECT_TRUE(second->rings());
}

TEST_F(order_files_test, who_was_not_started_under_chaos_takes_no_orders) {
  EXPECT_FALSE(outbox());
  ASSERT_TRUE(inbox(1));
  EXPECT_FALSE(outbox(3));
}

TEST_F(order_files_test, a_line_that_cannot_be_read_is_answered) {
  auto worker = inbox();
  auto injector = outbox();
  ASSERT_TRUE(worker && injector);
  auto lines = files_.open(folder_ + "/worker-2.1.orders", open_mode::append);
  ASSERT_TRUE(lines);
  const std::string text = "{\"id\":\n";
  ASSERT_TRUE((*lines)->append(std::as_bytes(std::span(text.data(), text.size()))));
  ASSERT_TRUE(injector->give(order(1)));
  EXPECT_THAT(worker->take(), SizeIs(1));
  const auto got = injector->take_proofs();
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].what, proof::kind::failed);
}

}  // namespace
}  // namespace troupe::actors::chaos
