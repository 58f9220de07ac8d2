#include "actors/chaos/processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <sstream>
#include <utility>

namespace troupe::actors::chaos {
namespace {

// Files of /proc have no size; they are short.
std::optional<std::string> proc_file(int id, const char* name) {
  const int fd = open(fmt::format("/proc/{}/{}", id, name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text;
  char piece[4096];
  for (ssize_t n; (n = read(fd, piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<std::size_t>(n));
  }
  close(fd);
  if (text.empty()) return std::nullopt;
  return text;
}

error cannot_start(const std::string& what) {
  return {exit_code::io, fmt::format("cannot start {}: {}", what, std::strerror(errno))};
}

result<held_process> hold_child(int id, const std::string& what) {
  if (id < 0) return cannot_start(what);
  setpgid(id, id);
  std::optional<held_process> held = held_process::hold(id);
  ensure(held.has_value(), "a child that was just started cannot be held");
  return std::move(*held);
}

}  // namespace

std::optional<held_process> held_process::hold(int id) {
  held_process p;
  p.id_ = id;
  p.fd_ = static_cast<int>(syscall(SYS_pidfd_open, id, 0));
  if (p.fd_ < 0) return std::nullopt;
  return p;
}

held_process::~held_process() {
  if (fd_ >= 0) close(fd_);
}
held_process::held_process(held_process&& other) noexcept
    : id_(other.id_), fd_(std::exchange(other.fd_, -1)) {}
held_process& held_process::operator=(held_process&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(fd_, other.fd_);
  return *this;
}

bool held_process::ended() const {
  pollfd end{fd_, POLLIN, 0};
  return fd_ < 0 || poll(&end, 1, 0) == 1;
}

bool held_process::send(int signal) const {
  return fd_ >= 0 && syscall(SYS_pidfd_send_signal, fd_, signal, nullptr, 0) == 0;
}

int held_process::reap() const {
  siginfo_t end{};
  while (waitid(P_PID, static_cast<id_t>(id_), &end, WEXITED) < 0) {
    if (errno != EINTR) return 128 + SIGKILL;
  }
  return end.si_code == CLD_EXITED ? end.si_status : 128 + end.si_status;
}

std::optional<process_look> look_at(int id) {
  const auto text = proc_file(id, "stat");
  if (!text) return std::nullopt;
  // The name before may contain anything, also brackets.
  const std::size_t behind_name = text->rfind(')');
  if (behind_name == std::string::npos) return std::nullopt;
  std::istringstream fields(text->substr(behind_name + 1));
  process_look look;
  fields >> look.state;
  std::string skipped;
  for (int i = 0; i < 10; ++i) fields >> skipped;
  std::uint64_t user = 0, system = 0;
  fields >> user >> system;
  look.cpu_seconds = static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return look;
}

std::vector<int> children_of(int id) {
  std::vector<int> all;
  const auto text = proc_file(id, fmt::format("task/{}/children", id).c_str());
  std::istringstream numbers(text.value_or(""));
  for (int child; numbers >> child;) all.push_back(child);
  return all;
}

std::optional<std::string> worker_name(int id) {
  const auto text = proc_file(id, "cmdline");
  if (!text) return std::nullopt;
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find('\0', at), text->size());
    words.push_back(text->substr(at, end - at));
    at = end + 1;
  }
  if (words.size() < 2 || words[1] != "worker") return std::nullopt;
  for (std::size_t i = 2; i + 1 < words.size(); ++i) {
    if (words[i] == "--name") return words[i + 1];
  }
  return std::nullopt;
}

result<output_file> output_file::make() {
  const int fd = memfd_create("output", MFD_CLOEXEC);
  if (fd < 0) return cannot_start("a file in memory for output");
  return output_file(fd);
}
output_file::~output_file() {
  if (fd_ >= 0) close(fd_);
}
output_file::output_file(output_file&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

std::string output_file::text() const { return text_in(fd_); }

std::string text_in(int fd) {
  std::string all;
  char piece[4096];
  for (ssize_t n; (n = pread(fd, piece, sizeof piece, static_cast<off_t>(all.size()))) > 0;) {
    all.append(piece, static_cast<std::size_t>(n));
  }
  return all;
}

result<held_process> start_program(const std::string& program,
                                   const std::vector<std::string>& arguments, int output) {
  std::vector<char*> argv;  // all that allocates is done before the fork
  argv.reserve(arguments.size() + 1);
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const pid_t self = getpid();
  const pid_t id = fork();
  if (id == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self) _exit(static_cast<int>(exit_code::interrupted));
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  return hold_child(id, program);
}

result<held_process> start_busy_child() {
  const pid_t self = getpid();
  const pid_t id = fork();
  if (id == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(0);
    volatile std::uint64_t turns = 0;
    while (true) turns = turns + 1;
  }
  return hold_child(id, "a busy child");
}

adopts_orphans::adopts_orphans() {
  prctl(PR_GET_CHILD_SUBREAPER, &before_);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}
adopts_orphans::~adopts_orphans() { prctl(PR_SET_CHILD_SUBREAPER, before_); }

}  // namespace troupe::actors::chaos
