// What a run shows, on a terminal and in a file.
#include "actors/console.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>

#include "tests/model/data/data_files.hpp"

namespace troupe::actors {
namespace {

using testing::HasSubstr;
using testing::Not;

struct shown {
  std::string out, err;
};

progress at(std::uint64_t step) {
  progress p;
  p.step = step;
  p.steps = 500;
  p.loss = 2.5;
  return p;
}

// A run of 500 steps with a line every 50.
shown show_run(const console_settings& settings) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    console screen(settings);
    screen.start({{"model", "llama"}, {"run", "abc"}});
    for (std::uint64_t step = 1; step <= 500; ++step) {
      screen.step(at(step), step % 50 == 0);
      if (step == 75) screen.event("step 75 was skipped");
    }
    screen.say("finished");
    screen.failure("the disk is full");
  }
  shown s;
  s.out = testing::internal::GetCapturedStdout();
  s.err = testing::internal::GetCapturedStderr();
  return s;
}

TEST(console, in_a_file_writes_whole_lines_and_neither_carriage_returns_nor_escapes) {
  const shown s = show_run({.terminal = false, .color = false, .quiet = false});
  for (const std::string& text : {s.out, s.err}) {
    EXPECT_EQ(text.find('\r'), std::string::npos);
    EXPECT_EQ(text.find('\033'), std::string::npos);
    ASSERT_FALSE(text.empty());
    EXPECT_EQ(text.back(), '\n');
    EXPECT_THAT(text, Not(HasSubstr("\n\n")));
  }
  // The table's two lines, one line a log interval, one result.
  EXPECT_EQ(std::ranges::count(s.out, '\n'), 2 + 10 + 1);
  EXPECT_EQ(s.err, "troupe: step 75 was skipped\ntroupe: the disk is full\n");
}

TEST(console, writes_each_line_at_once) {
  console screen({.terminal = false, .color = false, .quiet = false});
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int out = dup(STDOUT_FILENO);
  dup2(ends[1], STDOUT_FILENO);
  screen.say("first");
  std::array<char, 16> seen{};
  // Whatever is not in the pipe by now is still held back by this process.
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const ssize_t got = read(ends[0], seen.data(), seen.size());
  dup2(out, STDOUT_FILENO);
  for (const int fd : {out, ends[0], ends[1]}) close(fd);
  EXPECT_EQ(got, 6);
  EXPECT_STREQ(seen.data(), "first\n");
}

TEST(console, on_a_terminal_shows_every_step_in_one_live_line) {
  const shown s = show_run({.terminal = true, .color = false, .quiet = false});
  EXPECT_THAT(s.out, HasSubstr("step   1/500"));
  EXPECT_THAT(s.out, HasSubstr("step  49/500"));
  EXPECT_EQ(std::ranges::count(s.out, '\n'), 2 + 10 + 1);
  // Before anything else is printed, the live line is taken back.
  EXPECT_THAT(s.out, HasSubstr("\r\033[Kstep  50/500"));
  EXPECT_EQ(s.out.find("\033[1m"), std::string::npos);
  EXPECT_TRUE(s.out.ends_with("finished\n"));
}

TEST(console, colors_only_the_loss_and_ends_the_color_before_the_line) {
  const shown s = show_run({.terminal = true, .color = true, .quiet = false});
  EXPECT_THAT(s.out, HasSubstr("loss \033[1m2.5000\033[0m  grad_norm"));
}

TEST(console, takes_the_live_line_back_at_its_end) {
  testing::internal::CaptureStdout();
  {
    console screen({.terminal = true, .color = false, .quiet = false});
    screen.step(at(1), false);
  }
  EXPECT_TRUE(testing::internal::GetCapturedStdout().ends_with("\r\033[K"));
}

TEST(console, when_quiet_tells_failures_only) {
  const shown s = show_run({.terminal = true, .color = true, .quiet = true});
  EXPECT_EQ(s.out, "");
  EXPECT_EQ(s.err, "troupe: the disk is full\n");
}

TEST(console, keeps_its_lines_in_a_log_as_well_and_appends_to_it) {
  const model::data::folder place;
  const std::string path = place.write("worker.log", "of an earlier start\n");
  const shown s = show_run({.terminal = true, .color = true, .quiet = true, .log_file = path});
  EXPECT_EQ(s.out, "");
  const std::string log = model::data::read_all(path);
  EXPECT_EQ(log.find_first_of("\r\033"), std::string::npos);
  EXPECT_TRUE(log.starts_with("of an earlier start\n"));
  // Two facts, ten log intervals, an event, a result, a failure.
  EXPECT_EQ(std::ranges::count(log, '\n'), 1 + 2 + 10 + 3);
  EXPECT_THAT(log, HasSubstr("Z  the disk is full\n"));
}

TEST(console, goes_on_without_a_log_that_it_cannot_write) {
  EXPECT_EQ(
      show_run({.terminal = false, .color = false, .quiet = true, .log_file = "/nowhere/x"}).err,
      "troupe: the disk is full\n");
}

TEST(console, an_event_that_comes_again_and_again_is_said_once_and_then_counted) {
  testing::internal::CaptureStderr();
  {
    console screen({.terminal = false, .color = false, .quiet = false});
    for (int i = 0; i < 1235; ++i) screen.event("gpu03 does not answer");
    screen.event("gpu03 answers");
    screen.event("gpu03 answers");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "troupe: gpu03 does not answer\n"
            "troupe: repeated 10 times: gpu03 does not answer\n"
            "troupe: repeated 100 times: gpu03 does not answer\n"
            "troupe: repeated 1000 times: gpu03 does not answer\n"
            "troupe: repeated 1234 times: gpu03 does not answer\n"
            "troupe: gpu03 answers\n"
            "troupe: repeated 1 times: gpu03 answers\n");
}

TEST(console, a_failure_is_never_swallowed_as_a_repetition) {
  testing::internal::CaptureStderr();
  {
    console screen({.terminal = false, .color = false, .quiet = false});
    screen.event("the disk is full");
    screen.failure("the disk is full");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "troupe: the disk is full\ntroupe: the disk is full\n");
}

TEST(console, what_others_named_cannot_command_the_terminal) {
  testing::internal::CaptureStderr();
  {
    console screen({.terminal = false, .color = false, .quiet = false});
    screen.event("host \033[2J\rx\tsays \303\244");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "troupe: host ?[2J?x\tsays \303\244\n");
}

TEST(console, is_no_terminal_when_its_output_is_captured) {
  testing::internal::CaptureStdout();
  const console_settings found = console_settings::detect(true, false);
  (void)testing::internal::GetCapturedStdout();
  EXPECT_FALSE(found.terminal);
  EXPECT_FALSE(found.color);
  EXPECT_TRUE(found.quiet);
}

}  // namespace
}  // namespace troupe::actors
