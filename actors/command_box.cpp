#include "actors/command_box.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

namespace troupe::actors {
namespace {

struct socket_name {
  sockaddr_un at{};
  socklen_t length = 0;
};

// The first byte is 0: no file.
socket_name name_of(const std::string& run_id) {
  socket_name n;
  n.at.sun_family = AF_UNIX;
  const std::string text = "troupe-launcher-" + run_id;
  const std::size_t bytes = std::min(text.size(), sizeof n.at.sun_path - 1);
  std::memcpy(n.at.sun_path + 1, text.data(), bytes);
  n.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return n;
}

// -1, with errno, if it cannot be had.
int open_socket(const socket_name& name) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1;
  if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 &&
      bind(fd, reinterpret_cast<const sockaddr*>(&name.at), name.length) == 0) {
    return fd;
  }
  const int trouble = errno;
  close(fd);
  errno = trouble;
  return -1;
}

bool is_own_or_root(std::optional<uid_t> who) { return who && (*who == 0 || *who == geteuid()); }

struct datagram {
  std::string words, from;
  std::optional<uid_t> sender;
};

// Nothing: there is none.
std::optional<datagram> receive(int fd) {
  std::array<char, 4096> text{};
  sockaddr_un from{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> about{};
  iovec into{text.data(), text.size()};
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  message.msg_control = about.data();
  message.msg_controllen = about.size();
  const ssize_t got = recvmsg(fd, &message, 0);
  if (got < 0) return std::nullopt;
  datagram d;
  d.words.assign(text.data(), static_cast<std::size_t>(got));
  d.from.assign(reinterpret_cast<const char*>(&from), message.msg_namelen);
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(c), sizeof sender);
    d.sender = sender.uid;
  }
  return d;
}

}  // namespace

result<command_box> command_box::open(const std::string& run_id) {
  const int fd = open_socket(name_of(run_id));
  if (fd >= 0) return command_box(fd);
  return error{exit_code::cannot_use,
               fmt::format("`troupe scale` and `troupe drain` will not reach this launcher: its "
                           "socket cannot be had: {}",
                           std::strerror(errno))};
}

command_box::~command_box() {
  if (fd_ >= 0) close(fd_);
}

std::optional<command_box::command> command_box::take() const {
  while (const auto got = receive(fd_)) {
    if (is_own_or_root(got->sender)) return command{got->words, got->from};
  }
  return std::nullopt;
}

void command_box::answer(const command& to, exit_code code, const std::string& words) const {
  const std::string text = fmt::format("{} {}", static_cast<int>(code), words);
  (void)sendto(fd_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(to.asker.data()),
               static_cast<socklen_t>(to.asker.size()));
}

result<std::optional<command_answer>> ask_launcher(const std::string& run_id,
                                                   const std::string& words,
                                                   std::chrono::milliseconds patience) {
  socket_name mine;  // any
  mine.at.sun_family = AF_UNIX;
  mine.length = sizeof mine.at.sun_family;
  const int fd = open_socket(mine);
  const auto trouble = [&](const std::string& what) {
    const error e{exit_code::io, fmt::format("{}: {}", what, std::strerror(errno))};
    if (fd >= 0) close(fd);
    return e;
  };
  if (fd < 0) return trouble("cannot open a socket to ask the launcher");
  const socket_name launcher = name_of(run_id);
  if (sendto(fd, words.data(), words.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&launcher.at), launcher.length) < 0) {
    if (errno == ECONNREFUSED) {
      close(fd);
      return std::optional<command_answer>();
    }
    return trouble("cannot ask the launcher");
  }
  const auto until = std::chrono::steady_clock::now() + patience;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd waits{fd, POLLIN, 0};
    const int ready = left.count() > 0 ? poll(&waits, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return trouble("cannot wait for the launcher's answer");
    if (ready == 0) {
      close(fd);
      return error{exit_code::io,
                   fmt::format("the launcher of this run did not answer within {:.1f} s; whether "
                               "it has taken the command on is not known, `troupe status` shows "
                               "what comes of it",
                               std::chrono::duration<double>(patience).count())};
    }
    const auto got = receive(fd);
    // Root may ask the launcher of anybody, who then answers.
    if (!got || (geteuid() != 0 && !is_own_or_root(got->sender))) continue;
    close(fd);
    command_answer answer;
    int code = 0;
    const char* const end = got->words.data() + got->words.size();
    const auto [stop, wrong] = std::from_chars(got->words.data(), end, code);
    if (wrong != std::errc{} || stop == end || *stop != ' ') {
      return error{exit_code::defect, "the launcher answered \"" + got->words + "\""};
    }
    answer.code = static_cast<exit_code>(code);
    answer.words.assign(stop + 1, end);
    return std::optional(std::move(answer));
  }
}

}  // namespace troupe::actors
