// A launcher's box and whoever asks it, in one process.
#include "actors/command_box.hpp"

#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include <future>

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

std::string some_run(const std::string& name) {
  return "test-" + std::to_string(getpid()) + "-" + name;
}
void wait_for(const command_box& box) {
  pollfd waits{box.fd(), POLLIN, 0};
  ASSERT_EQ(poll(&waits, 1, 10000), 1);
}

TEST(command_box, an_asker_hears_what_the_launcher_says) {
  const std::string run = some_run("hears");
  const auto box = command_box::open(run);
  ASSERT_TRUE(box) << box.failure().message;
  for (const exit_code code : {exit_code::ok, exit_code::usage}) {
    auto asked = std::async(std::launch::async,
                            [&] { return ask_launcher(run, "scale 4", milliseconds(10000)); });
    wait_for(*box);
    const auto command = box->take();
    ASSERT_TRUE(command);
    EXPECT_EQ(command->words, "scale 4");
    box->answer(*command, code, "from 2 to 4 workers");
    const auto answer = asked.get();
    ASSERT_TRUE(answer) << answer.failure().message;
    ASSERT_TRUE(answer->has_value());
    EXPECT_EQ((*answer)->code, code);
    EXPECT_EQ((*answer)->words, "from 2 to 4 workers");
  }
  EXPECT_FALSE(box->take());
}

TEST(command_box, where_no_launcher_is_nobody_answers_at_once) {
  const std::string run = some_run("nobody");
  { ASSERT_TRUE(command_box::open(run)); }  // one that is gone
  const auto answer = ask_launcher(run, "scale 4", milliseconds(10000));
  ASSERT_TRUE(answer) << answer.failure().message;
  EXPECT_FALSE(answer->has_value());
}

TEST(command_box, a_launcher_that_is_silent_is_told_of_and_later_finds_the_command) {
  const std::string run = some_run("silent");
  const auto box = command_box::open(run);
  ASSERT_TRUE(box);
  const auto answer = ask_launcher(run, "drain worker-1", milliseconds(1));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.failure().message, HasSubstr("not known"));
  const auto command = box->take();
  ASSERT_TRUE(command);
  box->answer(*command, exit_code::ok, "nobody hears it any more");
}

TEST(command_box, two_launchers_of_one_run_on_a_machine_are_one_too_many) {
  const std::string run = some_run("two");
  const auto box = command_box::open(run);
  ASSERT_TRUE(box);
  const auto second = command_box::open(run);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.failure().message, HasSubstr("in use"));
}

}  // namespace
}  // namespace troupe::actors
