#include "actors/stop_signals.hpp"

#include <unistd.h>

#include <atomic>

#include "config/base/error.hpp"

namespace troupe::actors {
namespace {

std::atomic<int> first_notice{0};
std::atomic<int> interrupts{0};
std::atomic<pid_t> launcher{0};  // 0: none
std::atomic<bool> run_is_meant{false};
static_assert(std::atomic<int>::is_always_lock_free,
              "a signal handler may only use lock-free atomics");

void notice(int signal, siginfo_t* from, void*) {
  const pid_t above = launcher.load();
  if (above != 0 && from->si_pid == above) run_is_meant = true;
  int none = 0;
  first_notice.compare_exchange_strong(none, signal);
  if (signal == SIGINT && interrupts.fetch_add(1) >= 1)
    _exit(static_cast<int>(exit_code::interrupted));
}

bool hangup_ignored() {
  struct sigaction current {};
  sigaction(SIGHUP, nullptr, &current);
  return current.sa_handler == SIG_IGN;
}

}  // namespace

sigset_t stop_signal_set() {
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) sigaddset(&set, s);
  if (!hangup_ignored()) sigaddset(&set, SIGHUP);
  return set;
}

void take_stop_signals(bool launched) {
  if (launched) launcher = getppid();
  const sigset_t set = stop_signal_set();
  struct sigaction action {};
  action.sa_sigaction = notice;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigfillset(&action.sa_mask);
  for (int s = 1; s < NSIG; ++s) {
    if (sigismember(&set, s) == 1) sigaction(s, &action, nullptr);
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

int stop_signal() { return first_notice.load(); }
bool stop_means_the_run() { return run_is_meant.load(); }

}  // namespace troupe::actors
