#include "actors/chaos/selector.hpp"

#include <gmock/gmock.h>

namespace troupe::actors::chaos {
namespace {

using testing::HasSubstr;

selector parsed(std::string_view text) {
  result<selector> s = parse_selector(text);
  EXPECT_TRUE(s) << text << ": " << (s ? "" : s.failure().message);
  return s ? *s : selector();
}

TEST(selector, is_printed_as_it_was_written) {
  for (const char* text : {"m2", "domain:1", "coordinator", "primary:7", "backup:7", "holder:7",
                           "layer:5", "joiner", "receiver:head", "link:m0>m2", "pair:m0-m2",
                           "side:m0,m1", "any", "any-not:coordinator", "any-not:m3", "all"}) {
    EXPECT_EQ(to_text(parsed(text)), text);
  }
}

TEST(selector, that_is_mistyped_names_the_nearest_or_shows_an_example) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"cordinator", "did you mean coordinator?"},
      {"m", "there is no target \"m\""},
      {"m-1", "there is no target"},
      {"domain:x", "as in domain:1"},
      {"link:m0-m2", "as in link:m0>m2"},
      {"pair:m1-m1", "takes two members"},
      {"side:", "as in side:m0,m1"},
      {"any:3", "takes no \":\""},
      {"any-not:any", "takes a member"},
      {"receiver:", "takes the id of a fault"},
  };
  for (const auto& [text, words] : cases) {
    const result<selector> s = parse_selector(text);
    ASSERT_FALSE(s) << text;
    EXPECT_THAT(s.failure().message, HasSubstr(words)) << text;
  }
}

}  // namespace
}  // namespace troupe::actors::chaos
