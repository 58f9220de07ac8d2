#include "actors/status_client.hpp"

#include <gmock/gmock.h>

#include "actors/http_server.hpp"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

TEST(status_client, tells_what_was_answered_and_when_nobody_answers) {
  comm::address where;
  {
    auto server = http_server::start({"127.0.0.1", 0}, [](const http_request& r) {
      const auto secret = r.headers.find("x-troupe-secret");
      const std::string word = secret == r.headers.end() ? "-" : secret->second;
      return http_response{202, "text/plain", r.method + r.path + word};
    });
    ASSERT_TRUE(server);
    where = (*server)->address();
    const auto got = http_get(where, "/x");
    ASSERT_TRUE(got);
    EXPECT_EQ(got->code, 202);
    EXPECT_EQ(got->body, "GET/x-");
    const auto posted = http_post(where, "/y", "word");
    ASSERT_TRUE(posted);
    EXPECT_EQ(posted->body, "POST/yword");
  }
  const auto nobody = http_get(where, "/x");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.failure().code, exit_code::too_few);
  EXPECT_THAT(nobody.failure().message, HasSubstr(to_text(where)));
}

}  // namespace
}  // namespace troupe::actors
