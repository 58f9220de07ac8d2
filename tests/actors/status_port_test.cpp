#include "actors/status_port.hpp"

#include <gmock/gmock.h>

#include "actors/status_client.hpp"
#include "tests/actors/worlds_to_see.hpp"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

struct port_of_a_process {
  manual_clock clock{noon};
  std::vector<comm::address> told;
  status_port port{{.listen = "127.0.0.1:0",
                    .hooks = {.secret = "word", .stop = {}, .clock = &clock},
                    .told = [this](const comm::address& a) { told.push_back(a); }}};
};

void publish(status_port& to, std::uint64_t step) {
  world_status seen = world_to_see();
  seen.step = step;
  to.publish(std::make_shared<const world_status>(seen));
}

TEST(status_port, that_opens_late_shows_the_newest_of_what_was_published_before) {
  port_of_a_process p;
  publish(p.port, 7);
  publish(p.port, 8);
  EXPECT_TRUE(p.told.empty()) << "it listens although nobody opened it";
  const result<std::uint16_t> number = p.port.open();
  ASSERT_TRUE(number) << number.failure().message;
  ASSERT_EQ(p.told.size(), 1U);
  EXPECT_EQ(p.told[0].port, *number);
  EXPECT_THAT(http_get(p.told[0], "/api/status")->body, HasSubstr("\"step\": 8"));
  publish(p.port, 9);
  EXPECT_THAT(http_get(p.told[0], "/api/status")->body, HasSubstr("\"step\": 9"));
}

TEST(status_port, opened_again_is_the_same_port) {
  port_of_a_process p;
  const result<std::uint16_t> first = p.port.open(), again = p.port.open();
  ASSERT_TRUE(first && again);
  EXPECT_EQ(*first, *again);
  EXPECT_EQ(p.told.size(), 1U);
}

TEST(status_port, closed_refuses_and_tells_nothing_old_when_it_opens_again) {
  port_of_a_process p;
  ASSERT_TRUE(p.port.open());
  publish(p.port, 7);
  p.port.close();
  EXPECT_FALSE(http_get(p.told[0], "/api/status"));
  ASSERT_TRUE(p.port.open());
  ASSERT_EQ(p.told.size(), 2U);
  EXPECT_EQ(http_get(p.told[1], "/api/status")->code, 503);
}

TEST(status_port, without_an_address_to_listen_at_is_number_0_and_with_a_bad_one_an_error) {
  status_port none({.listen = "", .hooks = {}, .told = {}});
  EXPECT_EQ(*none.open(), 0);
  status_port bad({.listen = "nowhere", .hooks = {}, .told = {}});
  const result<std::uint16_t> number = bad.open();
  ASSERT_FALSE(number);
  EXPECT_EQ(number.failure().code, exit_code::bad_config);
}

}  // namespace
}  // namespace troupe::actors
