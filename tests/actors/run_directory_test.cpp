// Who may use a directory for a run, and what is kept in it.
#include "actors/run_directory.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/model/data/data_files.hpp"

namespace troupe::actors {
namespace {

using model::data::expect_error;
using model::data::folder;
using model::data::read_all;

class run_directory_test : public testing::Test {
 protected:
  result<run_directory> claim(const std::string& path) {
    return run_directory::claim(real_file_system(), path, clock);
  }

  folder place;
  manual_clock clock{wall_time(std::chrono::seconds(86400))};
};

TEST_F(run_directory_test, is_made_with_all_folders_above_it_and_known_again) {
  const std::string path = place / "outputs/deep/run";
  std::string id;
  {
    const auto run = claim(path);
    ASSERT_OK(run);
    EXPECT_TRUE(run->is_new());
    EXPECT_EQ(run->path(), path);
    EXPECT_EQ(run->run_id().size(), 16u);
    id = run->run_id();
    EXPECT_NE(read_all(run->file("run.json")).find("1970-01-02T00:00:00.000Z"), std::string::npos);
  }
  for (const char* name : {"checkpoints", "logs", "run.json", "lock"})
    EXPECT_TRUE(std::filesystem::exists(path + "/" + name)) << name;
  const auto again = claim(path);
  ASSERT_OK(again);
  EXPECT_FALSE(again->is_new());
  EXPECT_EQ(again->run_id(), id);
  const auto reader = run_directory::open(real_file_system(), path);
  ASSERT_OK(reader);
  EXPECT_EQ(reader->run_id(), id);
}

TEST_F(run_directory_test, two_runs_have_two_names) {
  const auto a = claim(place / "a"), b = claim(place / "b");
  ASSERT_OK(a);
  ASSERT_OK(b);
  EXPECT_NE(a->run_id(), b->run_id());
}

TEST_F(run_directory_test, with_other_things_in_it_is_refused_and_left_alone) {
  std::filesystem::create_directory(place / "home");
  (void)place.write("home/thesis.tex", "years of work");
  expect_error(claim(place / "home"), exit_code::cannot_use,
               {place / "home", "holds thesis.tex", "--run-dir"});
  std::size_t entries = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(place / "home"))
    ++entries;
  EXPECT_EQ(entries, 1u);
  expect_error(run_directory::open(real_file_system(), place / "home"), exit_code::cannot_use,
               {place / "home", "run.json"});
}

TEST_F(run_directory_test, whose_place_is_a_file_is_refused) {
  expect_error(claim(place.write("file", "x") + "/run"), exit_code::cannot_use,
               {place / "file", "--run-dir"});
}

TEST_F(run_directory_test, that_another_process_holds_is_refused_with_its_number) {
  const std::string path = place / "run";
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto held = run_directory::claim(real_file_system(), path, clock);
    const char answer = held ? 'y' : 'n';
    if (write(told[1], &answer, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char answer = 0;
  ASSERT_EQ(read(told[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  expect_error(claim(path), exit_code::cannot_use,
               {path, "in use by process " + std::to_string(child), "troupe stop", "--run-dir"});
  const auto holder = holder_of(path);
  ASSERT_OK(holder);
  EXPECT_EQ(*holder, child);
  EXPECT_TRUE(run_directory::open(real_file_system(), path)) << "reading needs no lock";

  // However the holder ends, the directory is free again.
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(*holder_of(path), 0);
  EXPECT_TRUE(claim(path));
  close(told[0]);
  close(told[1]);
}

TEST_F(run_directory_test, is_waited_for_only_while_its_holder_has_left_others_behind) {
  const std::string path = place / "run";
  int told[2], end[2], left[2];
  ASSERT_EQ(pipe(told), 0);
  ASSERT_EQ(pipe(end), 0);
  ASSERT_EQ(pipe(left), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto held = run_directory::claim(real_file_system(), path, clock);
    if (fork() == 0) {  // as a worker does, it inherits the lock
      char byte = 0;
      _exit(read(left[0], &byte, 1) == 1 ? 0 : 1);
    }
    char byte = held ? 'y' : 'n';
    if (write(told[1], &byte, 1) != 1 || read(end[0], &byte, 1) != 1) _exit(1);
    _exit(0);
  }
  char answer = 0;
  ASSERT_EQ(read(told[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  std::vector<std::string> lines;
  const lock_patience long_one{.limit = std::chrono::seconds(60),
                               .say = [&](const std::string& line) {
                                 lines.push_back(line);
                                 EXPECT_EQ(write(left[1], "e", 1), 1);
                               }};
  expect_error(run_directory::claim(real_file_system(), path, clock, long_one),
               exit_code::cannot_use, {path, "in use by process " + std::to_string(child)});
  EXPECT_TRUE(lines.empty()) << "a holder that lives is not waited for";
  ASSERT_EQ(write(end[1], "e", 1), 1);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const lock_patience short_one{.limit = std::chrono::milliseconds(40), .say = {}};
  expect_error(run_directory::claim(real_file_system(), path, clock, short_one),
               exit_code::cannot_use, {path, "in use by"});
  // What it left ends once it is waited for.
  EXPECT_TRUE(run_directory::claim(real_file_system(), path, clock, long_one));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::HasSubstr("waiting up to 60 s for their end"));
  for (const int fd : {told[0], told[1], end[0], end[1], left[0], left[1]}) close(fd);
}

TEST_F(run_directory_test, that_others_hold_is_opened_without_the_lock_and_a_free_one_is_claimed) {
  const std::string path = place / "run";
  {
    const auto first = run_directory::claim_or_open(real_file_system(), path, clock);
    ASSERT_OK(first);
    EXPECT_GE(first->lock_fd(), 0);
    const auto second = run_directory::claim_or_open(real_file_system(), path, clock);
    ASSERT_OK(second);
    EXPECT_EQ(second->lock_fd(), -1);
    EXPECT_EQ(second->run_id(), first->run_id());
  }
  const auto third = run_directory::claim_or_open(real_file_system(), path, clock);
  ASSERT_OK(third);
  EXPECT_GE(third->lock_fd(), 0);
  std::filesystem::create_directory(place / "foreign");
  (void)place.write("foreign/thesis.tex", "years of work");
  expect_error(run_directory::claim_or_open(real_file_system(), place / "foreign", clock),
               exit_code::cannot_use, {"holds thesis.tex"});
}

TEST_F(run_directory_test, is_joined_with_the_launchers_lock_and_by_nobody_else) {
  const std::string path = place / "run", elsewhere = place / "other";
  const auto launcher = claim(path), stranger = claim(elsewhere);
  ASSERT_OK(launcher);
  ASSERT_OK(stranger);
  const int inherited = dup(launcher->lock_fd());  // as a child process gets it
  const auto worker = run_directory::join(real_file_system(), path, clock, inherited);
  ASSERT_OK(worker);
  EXPECT_EQ(worker->run_id(), launcher->run_id());
  for (const int wrong : {-1, 9999, dup(stranger->lock_fd())}) {
    expect_error(run_directory::join(real_file_system(), path, clock, wrong), exit_code::cannot_use,
                 {path, "in use"});
  }
}

TEST_F(run_directory_test, is_free_when_nobody_has_ever_held_it) {
  const auto holder = holder_of(place / "none");
  ASSERT_OK(holder);
  EXPECT_EQ(*holder, 0);
}

TEST_F(run_directory_test, keeps_every_config_that_was_in_force) {
  const auto run = claim(place / "run");
  ASSERT_OK(run);
  for (const char* text : {"a = 1\n", "a = 1\n", "a = 2\n", "a = 2\n", "a = 3\n"})
    ASSERT_OK(run->write_config(real_file_system(), text));
  EXPECT_EQ(read_all(run->file("config.toml")), "a = 3\n");
  EXPECT_EQ(read_all(run->file("config.1.toml")), "a = 1\n");
  EXPECT_EQ(read_all(run->file("config.2.toml")), "a = 2\n");
  EXPECT_FALSE(std::filesystem::exists(run->file("config.3.toml")));
}

TEST_F(run_directory_test, with_a_damaged_run_json_is_refused_and_not_named_anew) {
  ASSERT_OK(claim(place / "run"));
  const std::string whole = read_all(place / "run/run.json");
  for (const std::string& damaged :
       {std::string(), std::string("{"), whole.substr(0, whole.size() / 2),
        std::string("{\"format\":1}"), std::string("[]")}) {
    SCOPED_TRACE(damaged);
    const std::string path = place.write("run/run.json", damaged);
    expect_error(claim(place / "run"), exit_code::cannot_use, {path});
    expect_error(run_directory::open(real_file_system(), place / "run"), exit_code::cannot_use,
                 {path});
    EXPECT_EQ(read_all(path), damaged);
  }
}

}  // namespace
}  // namespace troupe::actors
