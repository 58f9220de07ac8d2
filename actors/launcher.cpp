#include "actors/launcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "actors/stop_signals.hpp"

namespace troupe::actors {
namespace {

void say(const std::string& text) { std::fputs((text + "\n").c_str(), stderr); }

[[noreturn]] void become_worker(const std::vector<std::string>& arguments, pid_t launcher,
                                const sigset_t& unblocked) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // a launcher that is killed takes its workers along, politely
  if (getppid() != launcher) _exit(static_cast<int>(exit_code::interrupted));
  sigprocmask(SIG_SETMASK, &unblocked, nullptr);
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  execv("/proc/self/exe", argv.data());
  std::fprintf(stderr, "troupe: cannot start a worker process: %s\n", std::strerror(errno));
  _exit(static_cast<int>(exit_code::defect));
}

// The exit code of the run after the worker has ended in this way.
int judge(const siginfo_t& end, pid_t worker, bool told_to_leave_now) {
  if (end.si_code == CLD_EXITED) return end.si_status;
  if (told_to_leave_now) {
    say("troupe: left at once as asked, without a save; the same command resumes from the newest "
        "checkpoint");
    return static_cast<int>(exit_code::interrupted);
  }
  say(
      fmt::format("troupe: the worker (pid {}) was killed by signal {} ({}); nothing that was "
                  "saved is lost, the "
                  "same command resumes",
                  worker, end.si_status, strsignal(end.si_status)));
  return static_cast<int>(exit_code::too_few);
}

}  // namespace

int run_worker_process(const std::vector<std::string>& arguments) {
  const sigset_t notices = stop_signal_set();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &notices, &before);
  const pid_t launcher = getpid();
  const pid_t worker = fork();
  if (worker == 0) become_worker(arguments, launcher, before);
  if (worker < 0) {
    say(fmt::format("troupe: cannot start a worker process: {}", std::strerror(errno)));
    return static_cast<int>(exit_code::defect);
  }
  setpgid(worker, worker);
  const int exits = static_cast<int>(syscall(SYS_pidfd_open, worker, 0));
  const int signals = signalfd(-1, &notices, SFD_CLOEXEC);
  ensure(exits >= 0 && signals >= 0,
         "the system has no pidfd or no signalfd (Linux 5.3 is needed)");

  bool interrupted_once = false, leave_now = false;
  while (true) {
    std::array<pollfd, 2> waits{{{exits, POLLIN, 0}, {signals, POLLIN, 0}}};
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) break;
    if ((waits[1].revents & POLLIN) != 0) {
      signalfd_siginfo notice;
      if (read(signals, &notice, sizeof notice) != sizeof notice) continue;
      if (notice.ssi_signo == SIGINT && interrupted_once) {
        leave_now = true;
        kill(worker, SIGKILL);
      } else {
        kill(worker, SIGTERM);
      }
      interrupted_once |= notice.ssi_signo == SIGINT;
    }
    if ((waits[0].revents & POLLIN) != 0) break;
  }
  siginfo_t end{};
  while (waitid(P_PID, static_cast<id_t>(worker), &end, WEXITED) < 0 && errno == EINTR) {
  }
  close(exits);
  close(signals);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return judge(end, worker, leave_now);
}

}  // namespace troupe::actors
