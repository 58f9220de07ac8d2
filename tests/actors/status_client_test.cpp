#include "actors/status_client.hpp"

#include <gmock/gmock.h>

#include "actors/http_server.hpp"
#include "config/base/memory_file.hpp"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

TEST(status_client, the_address_in_the_run_directory_comes_back_as_it_was_written) {
  memory_file_system files;
  ASSERT_TRUE(make_directories(files, "run"));
  const auto none = read_status_address(files, "run");
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  ASSERT_TRUE(write_status_address(files, "run", {{"gpu03", 4711}, "00ff"}));
  const auto there = read_status_address(files, "run");
  ASSERT_TRUE(there);
  ASSERT_TRUE(*there);
  EXPECT_EQ((*there)->http, (comm::address{"gpu03", 4711}));
  EXPECT_EQ((*there)->run_id, "00ff");
}

TEST(status_client, a_damaged_address_is_an_error_that_names_the_file) {
  memory_file_system files;
  ASSERT_TRUE(make_directories(files, "run"));
  for (const char* damaged : {"", "{}", R"({"run":"a","host":"h","http_port":65536})",
                              R"({"run":"a","host":"h","http_port":0})"}) {
    ASSERT_TRUE(replace(files, "run/address", damaged));
    const auto read = read_status_address(files, "run");
    ASSERT_FALSE(read) << damaged;
    EXPECT_THAT(read.failure().message, HasSubstr("run/address"));
  }
}

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
