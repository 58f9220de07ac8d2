#include "comm/ucx_context.hpp"

#include <gmock/gmock.h>

namespace troupe::comm {
namespace {

using testing::HasSubstr;

ucx_transports chosen(const std::optional<std::string>& asked) {
  const result<ucx_transports> answer = choose_transports(asked);
  EXPECT_TRUE(answer) << answer.failure().message;
  return *answer;
}

TEST(ucx_context, never_uses_cma_and_keeps_shared_memory_and_networks_apart) {
  constexpr auto no_memory = "^posix,sysv,self,sm,shm,xpmem,knem,cma";
  for (const auto& asked : {std::optional<std::string>(), std::optional<std::string>(""),
                            std::optional<std::string>("all"), std::optional<std::string>("^cma"),
                            std::optional<std::string>("all,tcp")}) {
    EXPECT_EQ(chosen(asked).this_host, "posix,sysv,self");
    EXPECT_THAT(chosen(asked).network,
                testing::AnyOf(no_memory, testing::StartsWith("^cma,posix")));
  }
  EXPECT_EQ(chosen("^sysv,rc").this_host, "posix,self");
  EXPECT_EQ(chosen("^sysv,rc").network, "^rc,posix,sysv,self,sm,shm,xpmem,knem,cma");
  EXPECT_EQ(chosen("^shm").this_host, "self");
  EXPECT_EQ(chosen("tcp").this_host, "");
  EXPECT_EQ(chosen("tcp").network, "tcp");
  EXPECT_EQ(chosen("shm,tcp").this_host, "posix,sysv");
  EXPECT_EQ(chosen("shm,tcp").network, "tcp");
  EXPECT_EQ(chosen("rc,posix,self,tcp").this_host, "posix,self");
  EXPECT_EQ(chosen("rc,posix,self,tcp").network, "rc,tcp");
}

TEST(ucx_context, refuses_an_environment_that_asks_for_cma) {
  for (const char* asked : {"cma", "tcp,cma", "cma,posix,tcp"}) {
    const result<ucx_transports> answer = choose_transports(asked);
    ASSERT_FALSE(answer) << asked;
    EXPECT_EQ(answer.failure().code, exit_code::bad_config);
    EXPECT_THAT(answer.failure().message, HasSubstr(std::string("UCX_TLS=") + asked));
  }
}

TEST(ucx_context, refuses_an_environment_in_which_no_peer_could_be_noticed) {
  const result<ucx_transports> answer = choose_transports("posix,self");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.failure().code, exit_code::bad_config);
  EXPECT_THAT(answer.failure().message, HasSubstr("add \"tcp\""));
}

TEST(ucx_context, opens_and_gives_back_many_workers) {
  const auto context = ucx_context::open("tcp", "lo");
  ASSERT_TRUE(context) << context.failure().message;
  for (int i = 0; i < 20; ++i) {
    const auto worker = ucx_worker::open(*context);
    ASSERT_TRUE(worker) << worker.failure().message;
    EXPECT_FALSE((*worker)->address().empty());
    EXPECT_GE((*worker)->event_fd(), 0);
  }
}

TEST(ucx_context, says_which_device_it_cannot_find) {
  const auto context = ucx_context::open("tcp", "nocard0");
  ASSERT_FALSE(context);
  EXPECT_THAT(context.failure().message, HasSubstr("nocard0"));
}

}  // namespace
}  // namespace troupe::comm
