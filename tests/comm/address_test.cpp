#include <gmock/gmock.h>

#include "comm/transport.hpp"

namespace troupe::comm {
namespace {

using testing::HasSubstr;

TEST(address, is_read_and_written_the_same_way) {
  for (const std::string text : {"127.0.0.1:0", "node-7.example:65535", "[::1]:4711"}) {
    const result<address> read = parse_address(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(to_text(*read), text);
  }
  EXPECT_EQ(*parse_address("[::1]:4711"), (address{"::1", 4711}));
}

TEST(address, names_what_is_wrong_with_it) {
  const auto message = [](std::string_view text) {
    const result<address> read = parse_address(text);
    return read ? std::string("accepted") : read.failure().message;
  };
  EXPECT_THAT(message("localhost"), HasSubstr("no port"));
  EXPECT_THAT(message("localhost:"), HasSubstr("is no port"));
  EXPECT_THAT(message("localhost:65536"), HasSubstr("\"65536\" is no port"));
  EXPECT_THAT(message("localhost:+80"), HasSubstr("is no port"));
  EXPECT_THAT(message(":80"), HasSubstr("no host"));
  EXPECT_THAT(message("::1:80"), HasSubstr("brackets"));
}

}  // namespace
}  // namespace troupe::comm
