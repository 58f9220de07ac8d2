// `troupe scale` and `troupe drain` against a launcher's box, a run's port, and nobody.
#include <gmock/gmock.h>
#include <poll.h>

#include <future>
#include <sstream>

#include "actors/command_box.hpp"
#include "actors/run_address.hpp"
#include "actors/run_directory.hpp"
#include "actors/status_server.hpp"
#include "tests/actors/cli/run_command.hpp"
#include "tests/actors/worlds_to_see.hpp"
#include "tests/model/data/data_files.hpp"

namespace troupe::actors::cli {
namespace {

using model::data::folder;
using testing::HasSubstr;

outcome scale(const std::vector<std::string>& words) { return run_command(scale_command, words); }
outcome drain(const std::vector<std::string>& words) { return run_command(drain_command, words); }

// A launcher that answers one command.
struct launcher {
  command_box box;
  std::string asked;
  explicit launcher(const std::string& run_id) : box(*command_box::open(run_id)) {}
  template <class Command>
  outcome answers(exit_code code, const std::string& words, Command command) {
    auto done = std::async(std::launch::async, command);
    pollfd waits{box.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&waits, 1, 20000), 1);
    if (const auto got = box.take()) {
      asked = got->words;
      box.answer(*got, code, words);
    }
    return done.get();
  }
};

struct scale_command_test : testing::Test {
  folder place;
  std::string path = place / "run";
  std::optional<run_directory> run;
  scale_command_test() {
    auto claimed = run_directory::claim(real_file_system(), path, real_clock());
    EXPECT_TRUE(claimed);
    run.emplace(*claimed);
  }
};

TEST_F(scale_command_test, says_what_the_launcher_has_taken_on) {
  launcher l(run->run_id());
  outcome o = l.answers(exit_code::ok, "from 2 to 4 workers", [&] { return scale({"4", path}); });
  EXPECT_EQ(l.asked, "scale 4");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, "scaling " + path + " from 2 to 4 workers\n");
  o = l.answers(exit_code::ok, "at 4 workers already", [&] { return scale({"4", path}); });
  EXPECT_EQ(o.out, path + " is at 4 workers already\n");
  o = l.answers(exit_code::ok, "worker-3 leaves", [&] { return drain({"worker-3", path}); });
  EXPECT_EQ(l.asked, "drain worker-3");
  EXPECT_EQ(o.out, "draining " + path + ": worker-3 leaves\n");
}

TEST_F(scale_command_test, a_refusal_has_its_exit_code_and_its_reason) {
  launcher l(run->run_id());
  for (const exit_code code : {exit_code::usage, exit_code::cannot_use}) {
    const outcome o = l.answers(code, "because of that", [&] { return scale({"0", path}); });
    EXPECT_EQ(o.code, static_cast<int>(code));
    EXPECT_EQ(o.out, "");
    EXPECT_THAT(o.err, HasSubstr("asked to scale 0 and refused: because of that"));
  }
}

TEST_F(scale_command_test, where_nobody_is_there_it_says_so_and_what_can_be_done) {
  const outcome o = scale({"4", path});
  EXPECT_EQ(o.code, 73);
  EXPECT_THAT(o.err, HasSubstr("no launcher of " + path));
  EXPECT_EQ(scale({"4", place / "nowhere"}).code, 73);
}

TEST_F(scale_command_test, goes_through_the_port_where_the_launcher_is_not_on_this_machine) {
  std::string asked;
  command_answer says{exit_code::ok, "from 2 to 4 workers"};
  bool launcher_there = true;
  auto server = status_server::start(
      "127.0.0.1:0",
      {.secret = "word",
       .stop = [] {},
       .order = [&](const std::string& words) -> result<std::optional<command_answer>> {
         asked = words;
         if (!launcher_there) return std::optional<command_answer>();
         return std::optional(says);
       }});
  ASSERT_TRUE(server);
  world_status seen = world_to_see();
  seen.run_id = run->run_id();
  (*server)->publish(std::make_shared<const world_status>(seen));
  place.write("run/secret", "word\n");
  place.write("other", "wrong\n");
  const std::uint16_t port = (*server)->address().port;
  ASSERT_TRUE(publish_address(real_file_system(), path,
                              {run->run_id(), generation(0), "127.0.0.1", port, port}));
  outcome o = scale({"4", path});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(asked, "scale 4");
  EXPECT_EQ(o.out, "scaling " + path + " from 2 to 4 workers\n");
  const std::string at = comm::to_text((*server)->address());
  o = drain({"worker-1", at, "--secret", place / "run/secret"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(asked, "drain worker-1");
  EXPECT_EQ(drain({"worker-1", at}).code, 64) << "the secret is asked for";
  asked = "";
  EXPECT_EQ(drain({"worker-1", at, "--secret", place / "other"}).code, 73);
  EXPECT_EQ(asked, "");
  says = {exit_code::usage, "not so many"};
  EXPECT_EQ(scale({"400", path}).code, 64);
  says = {exit_code::cannot_use, "it is stopping"};
  EXPECT_EQ(scale({"4", path}).code, 73);
  launcher_there = false;
  o = scale({"4", path});
  EXPECT_EQ(o.code, 69);
  EXPECT_THAT(o.err, HasSubstr("launcher"));
}

TEST_F(scale_command_test, a_wrong_command_line_is_64) {
  EXPECT_EQ(scale({}).code, 64);
  EXPECT_EQ(scale({"many", path}).code, 64);
  EXPECT_EQ(scale({"-1", path}).code, 64);
  EXPECT_EQ(drain({}).code, 64);
}

}  // namespace
}  // namespace troupe::actors::cli
