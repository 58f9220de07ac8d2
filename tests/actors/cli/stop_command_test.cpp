#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <sstream>

#include "actors/cli/commands.hpp"
#include "actors/run_address.hpp"
#include "actors/run_directory.hpp"
#include "actors/status_server.hpp"
#include "tests/model/data/data_files.hpp"

namespace troupe::actors::cli {
namespace {

using model::data::folder;

struct outcome {
  int code;
  std::string out, err;
};
outcome stop(const std::string& run) {
  std::ostringstream out, err;
  const int code = stop_command(std::vector<std::string>{run}, out, err);
  return {code, out.str(), err.str()};
}

TEST(stop_command, where_nothing_runs_says_so_and_ends_well) {
  folder place;
  { ASSERT_OK(run_directory::claim(real_file_system(), place / "run", real_clock())); }
  const outcome o = stop(place / "run");
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.out, "");
  EXPECT_EQ(o.err, "troupe: nothing runs in " + (place / "run") + "\n");
}

TEST(stop_command, refuses_what_is_no_run) {
  folder place;
  const outcome o = stop(place / "nowhere");
  EXPECT_EQ(o.code, 73);
  EXPECT_NE(o.err.find(place / "nowhere"), std::string::npos);
}

TEST(stop_command, sends_term_to_the_process_that_holds_the_run) {
  folder place;
  const std::string path = place / "run";
  sigset_t term, before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, &before);  // so that the child can wait for it without a race
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto held = run_directory::claim(real_file_system(), path, real_clock());
    const char answer = held ? 'y' : 'n';
    if (write(told[1], &answer, 1) != 1) _exit(1);
    int got = 0;
    sigwait(&term, &got);
    _exit(got == SIGTERM ? 42 : 1);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  char answer = 0;
  ASSERT_EQ(read(told[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  const outcome o = stop(path);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("process " + std::to_string(child)), std::string::npos) << o.out;
  if (o.code != 0) kill(child, SIGKILL);
  int end = 0;
  ASSERT_EQ(waitpid(child, &end, 0), child);
  EXPECT_TRUE(WIFEXITED(end));
  EXPECT_EQ(WEXITSTATUS(end), 42);
  close(told[0]);
  close(told[1]);
}

// The launcher is gone and its number is nobody's, but a worker holds the lock and answers.
TEST(stop_command, asks_at_the_port_where_no_process_of_that_number_holds_the_run) {
  folder place;
  const std::string path = place / "run";
  const auto run = run_directory::claim(real_file_system(), path, real_clock());
  ASSERT_TRUE(run);
  place.write("run/lock", "1073741824\n");
  place.write("run/secret", "word\n");
  std::atomic<int> stops = 0;
  auto server = status_server::start("127.0.0.1:0", {.secret = "word", .stop = [&] { ++stops; }});
  ASSERT_TRUE(server);
  world_status seen;
  seen.run_id = run->run_id();
  (*server)->publish(std::make_shared<const world_status>(seen));
  const outcome unknown = stop(path);
  EXPECT_EQ(unknown.code, 73);
  EXPECT_NE(unknown.err.find("1073741824"), std::string::npos) << unknown.err;
  const std::uint16_t port = (*server)->address().port;
  ASSERT_TRUE(publish_address(real_file_system(), path,
                              {run->run_id(), generation(0), "127.0.0.1", port, port}));
  const outcome o = stop(path);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(stops, 1);
  place.write("run/secret", "another\n");
  EXPECT_EQ(stop(path).code, 73);
  EXPECT_EQ(stops, 1);
  EXPECT_EQ(stop(to_text((*server)->address())).code, 64);
}

}  // namespace
}  // namespace troupe::actors::cli
