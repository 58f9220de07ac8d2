// A transport without anybody: what is asked of it has an end.
#include "comm/lone_transport.hpp"

#include <gmock/gmock.h>

#include <thread>

namespace troupe::comm {
namespace {

class ends_heard final : public control_handler {
 public:
  void link_opened(link_id, bool) override { FAIL() << "nobody is there"; }
  void frame_received(link_id, bytes_view) override { FAIL() << "nobody is there"; }
  void link_closed(link_id link, const std::string& why) override {
    links.push_back(link);
    reason = why;
  }
  std::vector<link_id> links;
  std::string reason;
};

class lone_transport_test : public testing::Test {
 protected:
  lone_transport_test() { lone.start(heard); }
  ends_heard heard;
  lone_transport lone;
};

TEST_F(lone_transport_test, a_link_to_anybody_ends_once_and_says_why) {
  const link_id link = lone.control().connect({"10.0.0.7", 4711});
  lone.control().send(link, {});
  EXPECT_TRUE(heard.links.empty()) << "nothing may be told within the call";
  EXPECT_TRUE(lone.progress());
  EXPECT_THAT(heard.links, testing::ElementsAre(link));
  EXPECT_THAT(heard.reason, testing::HasSubstr("10.0.0.7:4711"));
  EXPECT_FALSE(lone.progress());
}

TEST_F(lone_transport_test, a_link_that_was_closed_is_not_told_of) {
  const link_id closed = lone.control().connect({"10.0.0.7", 1});
  const link_id open = lone.control().connect({"10.0.0.7", 2});
  lone.control().close(closed);
  EXPECT_TRUE(lone.progress());
  EXPECT_THAT(heard.links, testing::ElementsAre(open));
}

TEST_F(lone_transport_test, waiting_ends_when_another_thread_wakes_it) {
  std::thread other([this] { lone.wake(); });
  lone.wait(std::chrono::hours(1), waiting::eager);  // for ever, as far as this test goes
  other.join();
}

TEST_F(lone_transport_test, a_wake_before_the_wait_is_not_lost) {
  lone.wake();
  lone.wait(std::chrono::hours(1), waiting::eager);
}

}  // namespace
}  // namespace troupe::comm
