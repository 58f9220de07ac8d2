// A socket that says what it is told to, for whoever tests a server with more than good requests.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "comm/transport.hpp"

namespace troupe::actors {

class http_probe {
 public:
  explicit http_probe(const comm::address& at)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(at.port);
    inet_pton(AF_INET, at.host.c_str(), &where.sin_addr);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
    const timeval patience{10, 0};  // a test that waits in vain fails
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  ~http_probe() { close(fd_); }
  http_probe(const http_probe&) = delete;
  http_probe& operator=(const http_probe&) = delete;

  // How much the other side took.
  std::size_t say(const std::string& text) {
    std::size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t put = send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (put <= 0) break;
      sent += static_cast<std::size_t>(put);
    }
    return sent;
  }
  // Everything until the other side ends.
  std::string hear() {
    std::string all;
    std::array<char, 4096> buffer;
    for (ssize_t got; (got = recv(fd_, buffer.data(), buffer.size(), 0)) > 0;) {
      all.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return all;
  }
  bool is_closed() {  // waits for it
    char byte = 0;
    return recv(fd_, &byte, 1, 0) <= 0 && errno != EAGAIN;
  }

 private:
  int fd_;
};

inline std::string ask(const comm::address& at, const std::string& request) {
  http_probe probe(at);
  probe.say(request);
  return probe.hear();
}

}  // namespace troupe::actors
