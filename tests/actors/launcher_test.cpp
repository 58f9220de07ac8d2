// The launcher on real processes: shells stand in for workers, so that every end can be ordered.
// A pipe that all of them hold tells when none is left, without looking at a clock.
#include "actors/launcher.hpp"

#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <optional>

namespace troupe::actors {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

// A process that takes the place of one that ended sees "again" as $0.
worker_start shell(const std::string& name, const std::string& script) {
  return {name, {"sh", "-c", script}, {{"WORKER", name}}, "", {"again"}};
}
restart_rule at_most(int restarts) {
  return {.limit = restarts,
          .window = std::chrono::seconds(600),
          .first_pause = std::chrono::milliseconds(1),
          .longest_pause = std::chrono::milliseconds(1)};
}

struct ending {
  int code;
  std::vector<std::string> lines;
};
ending launch(const std::vector<worker_start>& workers, launcher_hooks hooks = {}) {
  ending e;
  hooks.program = "/bin/sh";
  hooks.say = [&](const std::string& line) { e.lines.push_back(line); };
  e.code = run_worker_processes(workers, hooks);
  return e;
}
launcher_hooks restarting(int limit) {
  launcher_hooks hooks;
  hooks.restarts = at_most(limit);
  return hooks;
}

// Lines from one worker to another.
class line_pipe {
 public:
  line_pipe() { EXPECT_EQ(pipe(ends_), 0); }
  ~line_pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  std::string read() const { return "read line <&" + std::to_string(ends_[0]) + "; "; }
  std::string write() const { return "echo x >&" + std::to_string(ends_[1]) + "; "; }

 private:
  int ends_[2] = {-1, -1};
};

bool no_child_is_left() { return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

// Read by the test, held open for writing by every process that inherited it.
class held_pipe {
 public:
  held_pipe() { EXPECT_EQ(pipe(ends_), 0); }
  ~held_pipe() {
    close(ends_[0]);
    close_mine();
  }
  int write_end() const { return ends_[1]; }
  void close_mine() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  // So many bytes, or fewer if the last holder ended before.
  std::string read_bytes(std::size_t count) {
    std::string text;
    char byte = 0;
    while (text.size() < count && ready() && read(ends_[0], &byte, 1) == 1) text += byte;
    return text;
  }
  bool all_gone() {
    close_mine();
    std::array<char, 64> rest{};
    while (ready()) {
      if (read(ends_[0], rest.data(), rest.size()) == 0) return true;
    }
    return false;
  }

 private:
  bool ready() {  // a test that waits in vain fails instead of hanging
    pollfd wait{ends_[0], POLLIN, 0};
    return poll(&wait, 1, 20000) == 1;
  }
  int ends_[2] = {-1, -1};
};

// A launcher in a process of its own, for whoever wants to send it signals or kill it.
struct launcher_process {
  pid_t id;
  launcher_process(const std::vector<worker_start>& workers) : id(fork()) {
    if (id == 0) _exit(run_worker_processes(workers, {.program = "/bin/sh"}));
  }
  int wait() const {
    int end = 0;
    EXPECT_EQ(waitpid(id, &end, 0), id);
    return WIFEXITED(end) ? WEXITSTATUS(end) : 128 + WTERMSIG(end);
  }
};

TEST(launcher, when_all_workers_agree_the_run_ends_as_they_did) {
  for (const int code : {0, 75}) {
    std::vector<worker_start> workers;
    for (int i = 0; i < 4; ++i) {
      workers.push_back(shell("worker-" + std::to_string(i), "exit " + std::to_string(code)));
    }
    const ending e = launch(workers);
    EXPECT_EQ(e.code, code);
    EXPECT_THAT(e.lines, IsEmpty());
  }
  EXPECT_TRUE(no_child_is_left());
}

TEST(launcher, ends_with_the_first_causes_code_whatever_the_order_of_ends) {
  for (const bool cause_first : {true, false}) {
    // The one that comes second waits for a line of the first.
    const line_pipe order;
    const std::string first = "; code=$?; " + order.write() + "exit $code";
    const std::string second = order.read();
    const ending e = launch({
        shell("worker-0", cause_first ? second + "exit 69" : "(exit 69)" + first),
        shell("worker-1", cause_first ? "(exit 65)" + first : second + "exit 65"),
    });
    EXPECT_EQ(e.code, 65);
    EXPECT_THAT(e.lines, Contains(HasSubstr("worker-1 on")));
    EXPECT_THAT(e.lines, Contains("stopped because of it: worker-0"));
  }
}

TEST(launcher, a_killed_worker_that_the_world_cannot_do_without_ends_the_run_with_its_name) {
  const ending e = launch(
      {shell("worker-0", "exit 69"), shell("worker-1", "kill -9 $$"), shell("worker-2", "exit 69")},
      restarting(0));
  EXPECT_EQ(e.code, 69);
  EXPECT_THAT(e.lines, Contains(HasSubstr("worker-1 on")));
  EXPECT_THAT(e.lines, Contains(HasSubstr("was killed by signal 9")));
}

TEST(launcher, those_who_do_not_notice_are_told_and_those_who_do_not_listen_are_killed) {
  launcher_hooks short_one;
  short_one.patience = {.to_notice = std::chrono::milliseconds(50),
                        .to_finish = std::chrono::milliseconds(50),
                        .to_leave = std::chrono::milliseconds(500)};
  const ending e = launch({shell("worker-0", "exit 65"), shell("worker-1", "exec sleep 600"),
                           shell("worker-2", "trap '' TERM; while :; do sleep 600; done")},
                          short_one);
  EXPECT_EQ(e.code, 65);
  EXPECT_THAT(e.lines, Contains(AllOf(HasSubstr("were told to: "), HasSubstr("worker-1"),
                                      HasSubstr("worker-2"))));
  EXPECT_TRUE(no_child_is_left());
}

TEST(launcher, a_killed_worker_is_started_again_with_further_words_while_another_runs) {
  const line_pipe back;
  const ending e =
      launch({shell("worker-0", back.read() + "exit 0"),
              shell("worker-1", "if [ \"$0\" = again ] && [ \"$WORKER\" = worker-1 ]; then " +
                                    back.write() + "exit 0; fi; kill -9 $$")});
  EXPECT_EQ(e.code, 0);
  EXPECT_THAT(e.lines, ElementsAre(MatchesRegex(
                           "worker-1 .process [0-9]+. ended by SIGKILL; started again as process "
                           "[0-9]+ .restart 1 of 10 within 600 s.")));
  EXPECT_TRUE(no_child_is_left());
}

TEST(launcher, a_worker_that_dies_again_and_again_is_left_out_in_the_end) {
  const line_pipe lives;
  const ending e =
      launch({shell("worker-0", lives.read() + lives.read() + lives.read() + lives.read()),
              shell("worker-1", lives.write() + "kill -9 $$")},
             restarting(3));
  EXPECT_EQ(e.code, 0);
  int restarts = 0;
  for (const std::string& line : e.lines) {
    restarts += line.find("started again as process") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(restarts, 3);
  EXPECT_TRUE(no_child_is_left());
}

TEST(launcher, whoever_is_in_no_plan_yet_cannot_carry_the_run_when_all_others_are_lost) {
  const line_pipe up;
  launcher_hooks hooks;
  hooks.next_life = [next = std::uint64_t{1}]() mutable { return incarnation(next++); };
  hooks.newest_plan = [] {
    return std::optional(std::vector<life_in_plan>{{"worker-0", incarnation(1)},  // the first two
                                                   {"worker-1", incarnation(2)}});
  };
  const ending e =
      launch({shell("worker-0", up.read() + "kill -9 $$"),
              shell("worker-1", "[ \"$0\" = again ] || kill -9 $$; trap 'exit 75' TERM; " +
                                    up.write() + "while :; do sleep 0.01; done")},
             hooks);
  EXPECT_EQ(e.code, 69);
  EXPECT_THAT(e.lines, Contains(HasSubstr("worker-1 on")));
  EXPECT_THAT(e.lines, Contains(HasSubstr("was killed by signal 9")));
  EXPECT_THAT(e.lines, Contains("stopped because of it: worker-0"));
  EXPECT_TRUE(no_child_is_left());
}

TEST(launcher, every_process_gets_a_life_of_its_own) {
  launcher_hooks hooks;
  hooks.next_life = [next = std::uint64_t{7}]() mutable { return incarnation(next++); };
  hooks.newest_plan = [] { return std::nullopt; };  // not to be had: all that run may be in it
  const line_pipe back;
  const ending e = launch({shell("worker-0", "test \"$0 $1\" = \"--life 7\" && " + back.read()),
                           shell("worker-1",
                                 "test \"$0 $1\" = \"--life 8\" && kill -9 $$; "
                                 "test \"$0 $1 $2\" = \"again --life 9\" && " +
                                     back.write())},
                          hooks);
  EXPECT_EQ(e.code, 0);
  EXPECT_THAT(e.lines, ElementsAre(HasSubstr("started again")));
}

TEST(launcher, nobody_is_started_again_after_a_notice) {
  held_pipe up;
  const std::string say_up = "echo u >&" + std::to_string(up.write_end()) + "; ";
  const std::string wait = say_up + "while :; do sleep 0.01; done";
  const launcher_process launcher({shell("worker-0", "trap 'exit 75' TERM; " + wait),
                                   shell("worker-1", "trap 'kill -9 $$' TERM; " + wait)});
  ASSERT_EQ(up.read_bytes(4), "u\nu\n");
  kill(launcher.id, SIGTERM);
  EXPECT_EQ(launcher.wait(), 75);
  up.close_mine();
  EXPECT_EQ(up.read_bytes(1), "") << "a third process came up";
  EXPECT_TRUE(up.all_gone());
}

TEST(launcher, a_worker_runs_in_a_group_of_its_own_with_its_own_environment) {
  const ending e = launch({shell("worker-7",
                                 "test \"$WORKER\" = worker-7 && "
                                 "test $(ps -o pgid= -p $$) = $$ && test -n \"$PATH\"")});
  EXPECT_EQ(e.code, 0);
}

TEST(launcher, a_program_that_cannot_be_started_is_a_defect) {
  const ending e = [] {
    ending made;
    made.code = run_worker_processes({shell("worker-0", "")}, {.program = "/nowhere/troupe",
                                                               .patience = {},
                                                               .restarts = {},
                                                               .newest_plan = {},
                                                               .say = {}});
    return made;
  }();
  EXPECT_EQ(e.code, 70);
  EXPECT_TRUE(no_child_is_left());
}

TEST(launcher, passes_every_notice_on_as_a_wish_to_leave) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP}) {
    held_pipe up;
    const std::string say_up = "echo u >&" + std::to_string(up.write_end()) + "; ";
    const std::string worker = "trap 'exit 75' TERM; " + say_up + "while :; do sleep 0.01; done";
    const launcher_process launcher({shell("worker-0", worker), shell("worker-1", worker)});
    ASSERT_EQ(up.read_bytes(4), "u\nu\n");
    kill(launcher.id, signal);
    EXPECT_EQ(launcher.wait(), 75) << signal;
    EXPECT_TRUE(up.all_gone());
  }
}

TEST(launcher, the_second_interrupt_leaves_at_once_with_75_and_nobody_stays) {
  held_pipe up;
  // They answer the first notice with a line and stay.
  const std::string fd = std::to_string(up.write_end());
  const std::string worker =
      "trap 'echo t >&" + fd + "' TERM; echo u >&" + fd + "; while :; do sleep 0.01; done";
  const launcher_process launcher({shell("worker-0", worker), shell("worker-1", worker)});
  ASSERT_EQ(up.read_bytes(4), "u\nu\n");
  kill(launcher.id, SIGINT);
  ASSERT_EQ(up.read_bytes(4), "t\nt\n");
  kill(launcher.id, SIGINT);
  EXPECT_EQ(launcher.wait(), 75);
  EXPECT_TRUE(up.all_gone());
}

TEST(launcher, a_killed_launcher_takes_its_workers_along) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // so that the orphans are ours to wait for
  held_pipe up;
  const std::string worker = "echo u >&" + std::to_string(up.write_end()) + "; exec sleep 600";
  const launcher_process launcher({shell("worker-0", worker), shell("worker-1", worker)});
  ASSERT_EQ(up.read_bytes(4), "u\nu\n");
  kill(launcher.id, SIGKILL);
  EXPECT_TRUE(up.all_gone());
  int orphans = 0;
  for (pid_t id; (id = waitpid(-1, nullptr, 0)) > 0;) orphans += id != launcher.id ? 1 : 0;
  EXPECT_EQ(orphans, 2);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(launcher, carries_out_what_it_is_asked_for_and_tells_the_worker_over_its_line) {
  const std::string run = "launcher-test-" + std::to_string(getpid());
  const line_pipe end;
  held_pipe said;
  const std::string to_test = " >&" + std::to_string(said.write_end());
  // $4 is its line. What is on it comes packet by packet, and reading an empty one fails.
  const std::string repeats_two_orders =
      "echo up" + to_test + "; for i in 1 2; do until dd bs=4096 count=1 status=none <&$4" +
      to_test + " 2>/dev/null; do sleep 0.01; done; echo" + to_test + "; done; exit 0";
  const pid_t launcher = fork();
  if (launcher == 0) {
    const auto box = command_box::open(run);
    if (!box) _exit(99);
    launcher_hooks hooks;
    hooks.program = "/bin/bash";  // the line may have two digits
    hooks.commands = &*box;
    hooks.limits.max_members = 3;
    hooks.next_life = [last = 0U]() mutable { return incarnation(++last); };
    hooks.newest_plan = [] {
      return std::optional(std::vector<life_in_plan>{{"worker-0", incarnation(1), true}});
    };
    hooks.one_more = [&](std::size_t slot, std::uint64_t) {
      return worker_start{
          "worker-" + std::to_string(slot), {"sh", "-c", repeats_two_orders, "again"}, {}, "", {}};
    };
    std::string lines;
    hooks.say = [&](const std::string& line) { lines += line + "\n"; };
    const int code = run_worker_processes(
        {shell("worker-0", "echo u" + to_test + "; " + end.read() + "exit 0")}, hooks);
    _exit(code == 0 && lines.find("worker-1 (process ") != std::string::npos &&
                  lines.find(") has left\n") != std::string::npos
              ? 0
              : 98);
  }
  const auto ask = [&](const std::string& words) -> std::string {
    const auto answer = ask_launcher(run, words, std::chrono::milliseconds(20000));
    if (!answer || !*answer) return "no answer";
    return std::to_string(static_cast<int>((*answer)->code)) + " " + (*answer)->words;
  };
  ASSERT_EQ(said.read_bytes(2), "u\n");
  EXPECT_EQ(ask("scale 9"), "64 9 workers would be more than elastic.max_members = 3");
  EXPECT_THAT(ask("dance"), HasSubstr("64 there are "));
  EXPECT_EQ(ask("drain worker-0"),
            "64 worker-0 is the last worker; `troupe stop` saves and ends the run");
  EXPECT_EQ(ask("scale 2"), "0 from 1 to 2 workers; starting worker-1");
  ASSERT_EQ(said.read_bytes(3), "up\n");
  EXPECT_EQ(ask("drain worker-1"), "0 worker-1 leaves, 1 worker stays");
  const std::string orders = "note 2 1 drain worker-1\nleave it is drained\n";
  EXPECT_EQ(said.read_bytes(orders.size()), orders);
  // Its launcher has seen it go before the other one ends.
  while (ask("drain worker-1").find("is leaving already") != std::string::npos) usleep(2000);
  ASSERT_EQ(system(end.write().substr(0, end.write().rfind(';')).c_str()), 0);
  int how = 0;
  ASSERT_EQ(waitpid(launcher, &how, 0), launcher);
  EXPECT_EQ(WIFEXITED(how) ? WEXITSTATUS(how) : -1, 0);
}

TEST(launcher, fifty_starts_and_ends_leave_no_process_and_no_file_behind) {
  held_pipe up;
  const int lowest_free = dup(0);
  close(lowest_free);
  for (int i = 0; i < 50; ++i) {
    // Every other world loses a member, which comes back once and is lost again.
    const ending e = launch(
        {shell("worker-0", "exit 0"), shell("worker-1", i % 2 == 0 ? "exit 0" : "kill -9 $$")},
        restarting(1));
    ASSERT_EQ(e.code, 0);
  }
  EXPECT_TRUE(no_child_is_left());
  EXPECT_TRUE(up.all_gone());
  const int now_free = dup(0);
  close(now_free);
  EXPECT_LE(now_free, lowest_free);
}

TEST(launcher, cores_are_shared_evenly_and_nobody_gets_none) {
  EXPECT_THAT(share_cores(16, 4), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(share_cores(7, 3), ElementsAre(3, 2, 2));
  EXPECT_THAT(share_cores(2, 4), ElementsAre(1, 1, 1, 1));
  for (int workers = 1; workers <= 9; ++workers) {
    const std::vector<int> shares = share_cores(9, workers);
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), 0), 9);
  }
}

}  // namespace
}  // namespace troupe::actors
