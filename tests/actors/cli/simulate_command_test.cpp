#include <gmock/gmock.h>

#include <sstream>

#include "actors/cli/commands.hpp"
#include "config/base/json.hpp"

namespace troupe::actors::cli {
namespace {

using testing::HasSubstr;

struct said {
  int code = -1;
  std::string out, err;
};

said simulate(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  const int code = simulate_command(args, out, err);
  return {code, out.str(), err.str()};
}

TEST(simulate_command, runs_every_seed_and_says_what_it_cost) {
  const said s = simulate({"--seeds", "1..3", "--members", "3", "--steps", "4"});
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_THAT(s.out, HasSubstr("3 of 3 members and 4 steps"));
  EXPECT_THAT(s.out, HasSubstr("CPU time"));
}

TEST(simulate_command, prints_one_json_object_when_asked_to) {
  const said s = simulate({"--seeds", "20", "--members", "2", "--steps", "2", "--json"});
  EXPECT_EQ(s.code, 0) << s.err;
  const auto page = parse_json(s.out, "out");
  ASSERT_TRUE(page) << page.failure().message;
  EXPECT_EQ(page->at("worlds"), 1);
  EXPECT_EQ(page->at("twice"), 1);
  EXPECT_TRUE(page->at("failures").empty());
}

TEST(simulate_command, says_which_scenario_cannot_be_read) {
  const said s = simulate({"not-there.toml", "--seeds", "1"});
  EXPECT_NE(s.code, 0);
  EXPECT_THAT(s.err, HasSubstr("not-there.toml"));
}

TEST(simulate_command, lets_a_scenario_say_alone_what_its_worlds_are) {
  for (const char* option : {"--members", "--steps", "--faults", "--backups"}) {
    const said s = simulate({"s.toml", option, "1"});
    EXPECT_EQ(s.code, 64) << option;
    EXPECT_THAT(s.err, HasSubstr(std::string(option) + " says nothing beside s.toml"));
  }
}

TEST(simulate_command, refuses_seeds_that_are_no_range) {
  for (const char* seeds : {"x", "3..1", "1..", "..4", "1..2..3", "18446744073709551615"}) {
    const said s = simulate({"--seeds", seeds});
    EXPECT_EQ(s.code, 64) << seeds;
    EXPECT_THAT(s.err, HasSubstr("--seeds")) << seeds;
  }
}

}  // namespace
}  // namespace troupe::actors::cli
