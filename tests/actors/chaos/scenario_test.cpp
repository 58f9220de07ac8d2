#include "actors/chaos/scenario.hpp"

#include <gmock/gmock.h>

#include "actors/chaos/scenario_reader.hpp"

namespace troupe::actors::chaos {
namespace {

std::string identity(const std::string& text) {
  result<scenario> s = read_scenario(text, "s.toml");
  EXPECT_TRUE(s) << (s ? "" : s.failure().message);
  return s ? identity_of(*s) : "";
}

const std::string plain =
    "schema = 1\nname = \"x\"\n[run]\nconfig = \"a.toml\"\n"
    "[[fault]]\nid = \"f\"\nkind = \"stop\"\ntarget = \"m0\"\nat_step = 5\nlasts = \"1s\"\n";

TEST(identity_of, does_not_see_comments_the_order_of_keys_or_a_default_written_out) {
  EXPECT_EQ(identity(plain),
            identity("# a comment\nseed = 1\nname = \"x\"\nschema = 1\n[run]\nguard = \"10m\"\n"
                     "config = \"a.toml\"\n[[fault]]\nlasts = \"1000ms\"\nat_step = \"5..5\"\n"
                     "kind = \"stop\"\nid = \"f\"\ntarget = \"m0\"\ncount = 1\nchance = 1.0\n"));
}

TEST(identity_of, sees_everything_that_could_change_the_run) {
  std::set<std::string> seen = {identity(plain)};
  const auto changed = [&](const std::string& what, const std::string& to) {
    std::string text = plain;
    const std::size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    EXPECT_TRUE(seen.insert(identity(text.replace(at, what.size(), to))).second) << to;
  };
  changed("schema = 1", "schema = 1\nseed = 2");
  changed("schema = 1", "schema = 1\nrepeat = 2");
  changed("schema = 1", "schema = 1\nmode = [\"sim\"]");
  changed("a.toml", "b.toml");
  changed("config", "guard = \"9m\"\nconfig");
  changed("config", "reference = \"none\"\nconfig");
  changed("config", "set = { \"training.steps\" = 5 }\nconfig");
  changed("[run]", "[cluster]\nmembers = 2\n[run]");
  changed("[run]", "[cluster]\nspares = 2\n[run]");
  changed("[run]", "[cluster]\nmembers = 1\ndomains = [[\"m0\"]]\n[run]");
  changed("[run]", "[limits]\ninside_promise = false\n[run]");
  changed("[run]", "[limits]\nmay_lose = [1]\n[run]");
  changed("[run]", "[quiet]\nat_step = 9\n[run]");
  changed("[run]", "[quiet]\nat_step = 9\nprogress = 3\n[run]");
  changed("[run]", "[invariants]\nbits = \"none\"\n[run]");
  changed("[run]", "[invariants]\nS-3 = false\n[run]");
  changed("[run]", "[expect]\nexit = 69\n[run]");
  changed("[run]", "[random]\nto_step = 9\nrate = 5\n[run]");
  changed("[run]", "[random]\nto_step = 9\nrate = 5\nmix = \"field\"\n[run]");
  changed("stop", "cpu-steal");
  changed("m0", "any");
  changed("at_step = 5", "at_step = 6");
  changed("at_step = 5", "at_step = 5\nat_point = \"voted\"");
  changed("at_step = 5", "at_time = \"5s\"");
  changed("at_step = 5", "on = \"recovered\"");
  changed("at_step = 5", "every = \"5s\"");
  changed("at_step = 5", "rate = 5");
  changed("at_step = 5", "at_step = 5\nchance = 0.5");
  changed("at_step = 5", "at_step = 5\ncount = 2");
  changed("at_step = 5", "at_step = 5\nagain = \"each-attempt\"");
  changed("at_step = 5", "at_step = 5\nmust_happen = false");
  changed("\"1s\"", "3");
  changed("\"1s\"", "\"quiet\"");
}

}  // namespace
}  // namespace troupe::actors::chaos
