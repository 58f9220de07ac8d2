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

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "actors/machine.hpp"
#include "actors/stop_signals.hpp"
#include "config/base/error.hpp"

namespace troupe::actors {
namespace {

// Everything that allocates is done before the fork.
struct prepared {
  std::vector<std::string> arguments, environment;
  std::vector<char*> argv, envp;

  prepared(const worker_start& start, bool again, std::optional<incarnation> life, int orders)
      : arguments(start.arguments) {
    if (again) arguments.insert(arguments.end(), start.again.begin(), start.again.end());
    if (life) arguments.insert(arguments.end(), {"--life", fmt::format("{}", life->value)});
    if (orders >= 0) arguments.insert(arguments.end(), {"--orders-fd", fmt::format("{}", orders)});
    for (char** at = environ; *at != nullptr; ++at) {
      const std::string_view old = *at;
      const bool replaced = std::ranges::any_of(
          start.environment, [&](const auto& set) { return old.starts_with(set.first + "="); });
      if (!replaced) environment.emplace_back(old);
    }
    for (const auto& [name, value] : start.environment) environment.push_back(name + "=" + value);
    for (std::string& a : arguments) argv.push_back(a.data());
    for (std::string& e : environment) envp.push_back(e.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
  }
};

[[noreturn]] void become_worker(const std::string& program, const prepared& worker, pid_t launcher,
                                const sigset_t& unblocked, int orders) {
  if (orders >= 0) fcntl(orders, F_SETFD, 0);  // the only one that it is to inherit
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != launcher) _exit(static_cast<int>(exit_code::interrupted));
  sigprocmask(SIG_SETMASK, &unblocked, nullptr);
  execve(program.c_str(), worker.argv.data(), worker.envp.data());
  std::fprintf(stderr, "troupe: cannot start a worker process: %s\n", std::strerror(errno));
  _exit(static_cast<int>(exit_code::defect));
}

class launcher {
 public:
  launcher(const std::vector<worker_start>& workers, const launcher_hooks& hooks)
      : workers_(workers), hooks_(hooks) {
    const sigset_t notices = stop_signal_set();
    sigprocmask(SIG_BLOCK, &notices, &before_);
    signals_ = signalfd(-1, &notices, SFD_CLOEXEC | SFD_NONBLOCK);
    ensure(signals_ >= 0, "the system has no signalfd");
  }
  ~launcher() {
    for (process& p : processes_) {
      if (p.end_fd >= 0) close(p.end_fd);
      hang_up(p);
    }
    close(signals_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  launcher(const launcher&) = delete;
  launcher& operator=(const launcher&) = delete;

  int run() {
    std::vector<launched_worker> known;
    for (const worker_start& w : workers_) {
      const std::optional<process> p = start(w, false);
      if (!p) return give_up(w.name);
      processes_.push_back(*p);
      known.push_back({w.name, p->id, w.log});
    }
    outcome_.emplace(std::move(known), host_name(), hooks_.patience, hooks_.restarts);
    while (!outcome_->over()) {
      wait();
      take_ends();
      take_notices();
      take_commands();
      carry_out(outcome_->due(real_clock().now()));
      start_again();
      for (const std::string& line : outcome_->take_news()) say(line);
    }
    if (const std::string words = outcome_->last_words(); !words.empty()) say(words);
    return outcome_->code();
  }

 private:
  struct process {
    pid_t id;
    int end_fd;  // readable once it has ended; -1: its end is taken
    std::optional<incarnation> life;
    int line = -1;                            // to it
    std::vector<launcher_order> untold = {};  // what the line could not take yet
  };

  static void hang_up(process& p) {
    if (p.line >= 0) close(p.line);
    p.line = -1;
    p.untold.clear();
  }

  std::optional<process> start(const worker_start& worker, bool again) const {
    std::optional<incarnation> life;
    if (hooks_.next_life) life = hooks_.next_life();
    line_ends line;
    if (hooks_.commands != nullptr) {
      const result<line_ends> opened = open_launcher_line();
      if (!opened) return std::nullopt;
      line = *opened;
    }
    const prepared ready(worker, again, life, line.theirs);
    const pid_t self = getpid();
    const pid_t id = fork();
    if (id == 0) become_worker(hooks_.program, ready, self, before_, line.theirs);
    const int trouble = errno;
    if (line.theirs >= 0) close(line.theirs);
    if (id < 0) {
      if (line.ours >= 0) close(line.ours);
      errno = trouble;
      return std::nullopt;
    }
    setpgid(id, id);  // whoever is first; it must be so before a signal is sent to the group
    const int end_fd = static_cast<int>(syscall(SYS_pidfd_open, id, 0));
    ensure(end_fd >= 0, "the system has no pidfd (Linux 5.3 is needed)");
    return process{id, end_fd, life, line.ours};
  }

  void start_again() {
    for (const std::size_t i : outcome_->restarts_due(real_clock().now())) {
      if (const std::optional<process> p = start(workers_[i], true)) {
        processes_[i] = *p;
        outcome_->restarted(i, p->id);
      } else {
        outcome_->not_restarted(i, std::strerror(errno), real_clock().now());
      }
    }
  }

  int give_up(const std::string& name) {
    say(fmt::format("cannot start the process of {}: {}; {} were started and are ended again", name,
                    std::strerror(errno), processes_.size()));
    for (const process& p : processes_) {
      kill(p.id, SIGKILL);
      (void)reap(p.id);
    }
    return static_cast<int>(exit_code::defect);
  }

  void wait() {
    std::vector<pollfd> waits{{signals_, POLLIN, 0}};
    for (const process& p : processes_) {
      if (p.end_fd >= 0) waits.push_back({p.end_fd, POLLIN, 0});
    }
    if (hooks_.commands != nullptr) waits.push_back({hooks_.commands->fd(), POLLIN, 0});
    int limit = -1;
    if (const auto due = outcome_->next_due()) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(*due - real_clock().now()).count();
      limit = static_cast<int>(std::clamp<std::int64_t>(left, 0, 60000));
    }
    if (std::ranges::any_of(processes_, [](const process& p) { return !p.untold.empty(); })) {
      limit = limit < 0 ? 100 : std::min(limit, 100);
    }
    const int got = poll(waits.data(), waits.size(), limit);
    ensure(got >= 0 || errno == EINTR || errno == ENOMEM, "the launcher cannot wait");
  }

  static worker_end reap(pid_t id) {
    siginfo_t end{};
    while (waitid(P_PID, static_cast<id_t>(id), &end, WEXITED) < 0 && errno == EINTR) {
    }
    return {.by_signal = end.si_code != CLD_EXITED, .number = end.si_status};
  }

  void look_for_members() {
    if (!hooks_.newest_plan || workers_.size() == 1) return;
    const auto named = hooks_.newest_plan();
    if (!named) return;
    coordinator_.clear();
    std::vector<standing> stand(workers_.size(), standing::out);
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      for (const life_in_plan& m : *named) {
        if (m.name != workers_[i].name) continue;
        stand[i] = m.life == processes_[i].life ? standing::in : standing::former;
        if (m.coordinates) coordinator_ = m.name;
      }
    }
    outcome_->in_world(stand);
  }

  void take_ends() {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      process& p = processes_[i];
      if (p.end_fd < 0) continue;
      pollfd ended{p.end_fd, POLLIN, 0};
      if (poll(&ended, 1, 0) != 1) continue;
      look_for_members();
      outcome_->ended(i, reap(p.id), real_clock().now());
      close(p.end_fd);
      p.end_fd = -1;
      hang_up(p);
    }
  }

  void take_notices() {
    signalfd_siginfo notice;
    while (read(signals_, &notice, sizeof notice) == sizeof notice) {
      carry_out(outcome_->notice(static_cast<int>(notice.ssi_signo)));
    }
  }

  void take_commands() {
    for (process& p : processes_) {
      while (!p.untold.empty() && tell_worker(p.line, p.untold.front())) {
        p.untold.erase(p.untold.begin());
      }
    }
    if (hooks_.commands == nullptr) return;
    while (const auto command = hooks_.commands->take()) {
      const std::optional<world_wish> wish = parse_wish(command->words);
      if (!wish) {
        hooks_.commands->answer(*command, exit_code::usage,
                                "there are `scale N` and `drain WORKER`");
        continue;
      }
      look_for_members();
      std::vector<slot_now> slots = outcome_->slots();
      for (slot_now& s : slots) s.coordinates = s.name == coordinator_;
      const world_order order = order_for(*wish, slots, hooks_.limits, outcome_->stops());
      if (order.code == exit_code::ok) take_on(*wish, order);
      hooks_.commands->answer(*command, order.code, order.words);
    }
  }

  void take_on(const world_wish& wish, world_order order) {
    for (std::size_t k = 0; k < order.add; ++k) {
      const std::size_t slot = workers_.size();
      workers_.push_back(hooks_.one_more(slot, order.to));
      processes_.push_back({0, -1, std::nullopt});
      outcome_->add({workers_.back().name, 0, workers_.back().log});
      order.start.push_back(slot);
    }
    say(fmt::format("asked to {}: {}", to_text(wish), order.words));
    const bool scales = std::holds_alternative<scale_wish>(wish);
    const leave_order leave{scales ? fmt::format("the world is scaled to {} worker{}", order.to,
                                                 order.to == 1 ? "" : "s")
                                   : "it is drained"};
    if (order.from != order.to) {
      for (process& p : processes_) tell(p, world_note{to_text(wish), order.from, order.to});
    }
    for (const std::size_t i : outcome_->take_on(order, real_clock().now())) {
      tell(processes_[i], leave);
    }
  }

  static void tell(process& p, const launcher_order& what) {
    if (p.line < 0) return;
    if (!p.untold.empty() || !tell_worker(p.line, what)) p.untold.push_back(what);
  }

  // A killed worker takes what it has started along.
  void carry_out(const std::vector<launch_outcome::order>& orders) {
    for (const auto& [worker, signal] : orders) {
      const pid_t id = processes_[worker].id;
      kill(signal == SIGKILL ? -id : id, signal);
    }
  }

  void say(const std::string& words) const {
    std::size_t at = 0;
    while (at <= words.size()) {
      const std::size_t end = std::min(words.find('\n', at), words.size());
      const std::string line = words.substr(at, end - at);
      if (hooks_.say) {
        hooks_.say(line);
      } else {
        std::fputs(("troupe: " + line + "\n").c_str(), stderr);
      }
      at = end + 1;
    }
  }

  std::vector<worker_start> workers_;  // by slot; more are added behind
  const launcher_hooks& hooks_;
  sigset_t before_{};
  int signals_ = -1;
  std::vector<process> processes_;  // by worker, its present or last one
  std::string coordinator_;         // by the newest plan that was looked at; "": none of these
  std::optional<launch_outcome> outcome_;
};

}  // namespace

int run_worker_processes(const std::vector<worker_start>& workers, const launcher_hooks& hooks) {
  ensure(!workers.empty(), "a launcher without workers");
  return launcher(workers, hooks).run();
}

std::vector<int> share_cores(int cores, int workers) {
  std::vector<int> shares;
  for (int i = 0; i < workers; ++i) {
    shares.push_back(std::max(1, cores / workers + (i < cores % workers ? 1 : 0)));
  }
  return shares;
}

}  // namespace troupe::actors
