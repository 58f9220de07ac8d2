// A second process of the same test program, which can be killed and stopped: what it does is said
// by a role, and both talk through two pipes in blobs with their length before them. The program
// calls itself anew instead of forking, because UCX has threads and a fork would have half of it.
#pragma once

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "comm/transport.hpp"

extern char** environ;

namespace troupe::comm {

inline void write_all(int fd, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd, at, size);
    if (n <= 0) return;  // the reader is gone: the test says so elsewhere
    at += n;
    size -= static_cast<std::size_t>(n);
  }
}
inline bool read_all(int fd, void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = ::read(fd, at, size);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

class pipe_end {
 public:
  pipe_end(int in, int out) : in_(in), out_(out) {}
  void say(bytes_view blob) const {
    const std::uint64_t size = blob.size();
    write_all(out_, &size, sizeof size);
    write_all(out_, blob.data(), blob.size());
  }
  void say(std::string_view text) const { say(std::as_bytes(std::span(text))); }
  // Empty when the other side has gone.
  bytes hear() const {
    std::uint64_t size = 0;
    if (!read_all(in_, &size, sizeof size)) return {};
    bytes blob(size);
    if (!read_all(in_, blob.data(), size)) return {};
    return blob;
  }
  std::string hear_text() const {
    const bytes blob = hear();
    return {reinterpret_cast<const char*>(blob.data()), blob.size()};
  }

 protected:
  int in_, out_;
};

class peer_process : public pipe_end {
 public:
  explicit peer_process(std::string role) : pipe_end(-1, -1) {
    std::array<int, 2> to{}, from{};
    EXPECT_EQ(::pipe(to.data()), 0);
    EXPECT_EQ(::pipe(from.data()), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 3);
    for (int fd : {to[1], from[0]}) posix_spawn_file_actions_addclose(&actions, fd);
    std::string program = "peer", mode = "--peer";
    std::array<char*, 4> arguments = {program.data(), mode.data(), role.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments.data(), environ),
              0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(to[0]);
    ::close(from[1]);
    out_ = to[1];
    in_ = from[0];
  }
  ~peer_process() {
    kill();
    ::close(in_);
    ::close(out_);
  }
  peer_process(const peer_process&) = delete;
  peer_process& operator=(const peer_process&) = delete;

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // Returns when the kernel has really stopped it.
  void stop() const {
    ::kill(pid_, SIGSTOP);
    int how = 0;
    ::waitpid(pid_, &how, WUNTRACED);
  }
  void go_on() const { ::kill(pid_, SIGCONT); }

 private:
  pid_t pid_ = -1;
};

// main() of a program with roles: `play(role, pipe)` is the peer's whole life.
template <class Play>
int run_tests_or_peer(int argc, char** argv, const Play& play) {
  if (argc == 3 && std::string(argv[1]) == "--peer") return play(argv[2], pipe_end(0, 3));
  ::signal(SIGPIPE, SIG_IGN);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace troupe::comm
